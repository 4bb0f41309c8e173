#ifndef LOCKSTEP_COMMON_CHECKPOINT_FILES_POSIX_FILE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FILES_POSIX_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep {

// PosixFile is one open regular file, read and written at given offsets. Reads
// and writes are whole or fail: short ones are continued, and so are those
// that a signal cut off.
//
// Threads: ReadAt() and WriteAt() are safe to share.
// Units:   bytes.
// Errors:  every message has the path and the system's own text; the code is
//          absl::ErrnoToStatusCode() of the cause, kNotFound and
//          kResourceExhausted (disk full) among them.
class PosixFile {
 public:
  //   kInvalidArgument  not a regular file
  static absl::StatusOr<PosixFile> OpenForRead(const std::string& path);

  // For its user to write and its group to read: values may tell what they
  // were learnt from.
  //
  //   kAlreadyExists  there is something of that name
  static absl::StatusOr<PosixFile> CreateNew(const std::string& path);

  PosixFile(PosixFile&& other) noexcept;
  PosixFile& operator=(PosixFile&& other) noexcept;
  ~PosixFile();

  const std::string& path() const { return path_; }

  absl::StatusOr<uint64_t> Size() const;

  // Makes the file `bytes` long with its blocks reserved, so that a full disk
  // shows now. File systems that cannot reserve only get the length.
  absl::Status Reserve(uint64_t bytes) const;

  absl::Status WriteAt(uint64_t offset, absl::Span<const char> bytes) const;

  //   kDataLoss  the file ends before `bytes` is full
  absl::Status ReadAt(uint64_t offset, absl::Span<char> bytes) const;

  // Returns when everything written would survive a loss of power.
  absl::Status Sync() const;

 private:
  PosixFile(std::string path, int fd);
  absl::Status Error(absl::string_view act) const;  // of the current errno
  void Close();

  std::string path_;
  int fd_;
};

// Makes a directory with all that leads to it, likewise for user and group.
// Those that are there stay as they are.
absl::Status MakeDirectories(const std::string& path);

// Makes renames and new names in a directory survive a loss of power.
absl::Status SyncDirectory(const std::string& path);

//   kInvalidArgument  not a regular file, or longer than `max_bytes`
absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          uint64_t max_bytes);

// Makes a new file of `contents` and syncs it; on failure there is none.
//
//   kAlreadyExists  there is something of that name
absl::Status WriteWholeFile(const std::string& path,
                            absl::string_view contents);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FILES_POSIX_FILE_H_
