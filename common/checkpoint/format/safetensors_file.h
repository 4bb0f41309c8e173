#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SAFETENSORS_FILE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SAFETENSORS_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/checkpoint/files/posix_file.h"
#include "common/checkpoint/format/byte_ranges.h"
#include "common/checkpoint/format/safetensors_header.h"

namespace lockstep {

// Index of each tensor in SafetensorsHeader::tensors.
using TensorIndex = absl::flat_hash_map<std::string, size_t>;

class SafetensorsReader;

// SafetensorsWriter writes one file from pieces in any order.
//
// Threads: WriteAt() is safe to share; Finish() excludes it.
// Units:   offsets and sizes count bytes.
// Owns:    the file, until Finish(): without it, the destructor removes the
//          file, if it has a name.
// Errors:  those of PosixFile, and those listed at each method.
class SafetensorsWriter {
 public:
  // Creates the file in its final size, including the header.
  //
  //   kAlreadyExists    there is something of that name
  //   kInvalidArgument  as BuildSafetensorsHeader()
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(
      const std::string& path, std::vector<TensorSpec> tensors,
      const std::map<std::string, std::string>& metadata);
  // As Create(), for a file as PosixFile::CreateUnnamed() makes it.
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> CreateUnnamed(
      const std::string& directory, std::vector<TensorSpec> tensors);

  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();

  const std::string& path() const { return file_.path(); }
  const SafetensorsHeader& header() const { return header_; }

  // Writes `bytes` at `offset` within `tensor`. A range may be written again:
  // the last write wins.
  //
  //   kNotFound            no such tensor
  //   kOutOfRange          beyond the end of the tensor
  //   kFailedPrecondition  the file is finished
  absl::Status WriteAt(absl::string_view tensor, uint64_t offset,
                       absl::Span<const char> bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes an I64 scalar, such as "global_step".
  //
  //   kInvalidArgument  the tensor is not an I64 scalar
  absl::Status WriteInt64(absl::string_view tensor, int64_t value);

  // Checks that every byte was written, and syncs the file. May be repeated.
  //
  //   kFailedPrecondition  names the first tensor with a byte missing; it can
  //                        still be written
  absl::Status Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns a reader of this very file, whatever is at its path now. Errors: as
  // SafetensorsReader::Open().
  absl::StatusOr<SafetensorsReader> Read() const;

  // True if every byte was written.
  bool IsComplete() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  SafetensorsWriter(PosixFile file, SafetensorsHeader header, bool named);
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Make(
      const std::string& path, std::vector<TensorSpec> tensors,
      const std::map<std::string, std::string>& metadata, bool named);
  absl::Status CheckComplete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PosixFile file_;
  const SafetensorsHeader header_;
  const TensorIndex index_;
  const bool named_;  // the file has its path

  mutable Mutex mutex_;
  std::vector<ByteRanges> written_ ABSL_GUARDED_BY(mutex_);  // per tensor
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

// SafetensorsReader is one open file with a checked header.
//
// Threads: safe to share.
// Units:   offsets and sizes count bytes.
// Errors:  those of PosixFile, and those listed at each method. Tensors are
//          read, not mapped: a file cut off later is an error, not a signal.
class SafetensorsReader {
 public:
  //   kDataLoss  the header is damaged or does not fit the file; names file,
  //              tensor, field, value and fix
  static absl::StatusOr<SafetensorsReader> Open(const std::string& path);
  static absl::StatusOr<SafetensorsReader> Open(PosixFile file);

  const std::string& path() const { return file_.path(); }
  const SafetensorsHeader& header() const { return header_; }

  // Null if there is none; valid as long as the reader is not moved.
  const StoredTensor* Find(absl::string_view tensor) const;

  // Fills `bytes` from `offset` within `tensor`.
  //
  //   kNotFound         no such tensor
  //   kInvalidArgument  its type is not IsReadable()
  //   kOutOfRange       beyond the end of the tensor
  //   kDataLoss         the file was cut off after it was opened
  absl::Status ReadAt(absl::string_view tensor, uint64_t offset,
                      absl::Span<char> bytes) const;

 private:
  SafetensorsReader(PosixFile file, SafetensorsHeader header);

  PosixFile file_;
  SafetensorsHeader header_;
  TensorIndex index_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SAFETENSORS_FILE_H_
