#ifndef LOCKSTEP_COMMON_CHECKPOINT_FILES_POSIX_FILE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FILES_POSIX_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep {

// Returns the status of the errno `error`, with the system's text appended to
// `message`. The code is absl::ErrnoToStatusCode(), except for errors that may
// pass and whose code means something else to callers: a stale file handle is
// no newer chief (kAborted), and a lack of descriptors no full disk
// (kResourceExhausted). These are kUnavailable.
absl::Status SystemError(int error, absl::string_view message);

// PosixFile is one open regular file, read and written at given offsets. Reads
// and writes are complete or fail: partial and interrupted ones are continued.
//
// Threads: ReadAt() and WriteAt() are safe to share.
// Units:   bytes.
// Errors:  every message has the path and the system's own text; the code is
//          that of SystemError(), kNotFound and kResourceExhausted (disk full)
//          among them.
class PosixFile {
 public:
  // Opens an existing file.
  //
  //   kInvalidArgument  not a regular file
  static absl::StatusOr<PosixFile> OpenForRead(const std::string& path);

  // Creates a file, readable and writable by its user and readable by its group
  // only: values may reveal training data.
  //
  //   kAlreadyExists  there is something of that name
  static absl::StatusOr<PosixFile> CreateNew(const std::string& path);
  // Creates a file of this process's own in `directory`, readable and writable
  // by its user only. It has no name, so that no other process can open or
  // replace it, and is gone with its last descriptor, also if the process is
  // killed.
  static absl::StatusOr<PosixFile> CreateUnnamed(const std::string& directory);

  PosixFile(PosixFile&& other) noexcept;
  PosixFile& operator=(PosixFile&& other) noexcept;
  ~PosixFile();

  // Returns the same open file once more, whatever is at its path now.
  absl::StatusOr<PosixFile> Again() const;

  const std::string& path() const { return path_; }

  // Returns the length of the file in bytes.
  absl::StatusOr<uint64_t> Size() const;

  // Sets the file's length to `bytes` and reserves its blocks, so that a full
  // disk fails now. File systems that cannot reserve only set the length.
  absl::Status Reserve(uint64_t bytes) const;

  // Writes all of `bytes` from byte `offset` of the file on, which grows if it
  // is shorter. If that fails, a part of `bytes` may have been written.
  absl::Status WriteAt(uint64_t offset, absl::Span<const char> bytes) const;

  // Fills `bytes` from byte `offset` of the file.
  //
  //   kDataLoss  the file ends before `bytes` is full
  absl::Status ReadAt(uint64_t offset, absl::Span<char> bytes) const;

  // Returns when all written bytes would survive a loss of power.
  absl::Status Sync() const;

 private:
  PosixFile(std::string path, int fd);
  absl::Status Error(absl::string_view act) const;  // from the current errno
  void Close();

  std::string path_;
  int fd_;
};

// Creates a directory and its missing parents, with the same permissions, and
// makes their names survive a loss of power. Existing ones are not changed.
// Errors: as PosixFile; kAlreadyExists for a file of the directory's name.
absl::Status MakeDirectories(const std::string& path);

// Makes renames and new names in a directory survive a loss of power, as far as
// its file system can sync directories. Errors: as PosixFile.
absl::Status SyncDirectory(const std::string& path);

// Returns the contents of a file.
//
//   kInvalidArgument  not a regular file, or longer than `max_bytes`
absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          uint64_t max_bytes);

// Creates a file with `contents` and syncs it; on failure removes it.
//
//   kAlreadyExists  there is something of that name
absl::Status WriteWholeFile(const std::string& path,
                            absl::string_view contents);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FILES_POSIX_FILE_H_
