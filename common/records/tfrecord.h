#ifndef LOCKSTEP_COMMON_RECORDS_TFRECORD_H_
#define LOCKSTEP_COMMON_RECORDS_TFRECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The cyclic redundancy check of RFC 3720 (Castagnoli's polynomial), and its
// masked form in TFRecord files: rotated, plus a constant, so that the check
// stays strong for bytes that contain checks.
uint32_t Crc32c(absl::string_view bytes);
uint32_t MaskedCrc32c(absl::string_view bytes);

// Adds a record to the bytes of a TFRecord file.
void AppendTfRecord(absl::string_view record, std::string& file);

// TfRecordReader walks through the bytes of a TFRecord file, as TensorFlow
// writes them. All numbers are little-endian:
//
//   uint64 length | uint32 masked CRC of these 8 bytes
//   `length` bytes | uint32 masked CRC of them          and so on
//
// Threads: not thread-safe.
// Borrows: the bytes; records refer to them.
class TfRecordReader {
 public:
  explicit TfRecordReader(absl::string_view bytes) : bytes_(bytes) {}

  // Returns the next record; nothing after the last one.
  //
  //   kDataLoss  the record is cut off, or a check is wrong; says at which byte
  absl::StatusOr<std::optional<absl::string_view>> Next();

 private:
  // Returns the next `size` bytes, after checking them against the following
  // four.
  absl::StatusOr<absl::string_view> Checked(uint64_t size, const char* what);

  const absl::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RECORDS_TFRECORD_H_
