#ifndef LOCKSTEP_SERVER_STATE_FILE_MAPPED_FILE_H_
#define LOCKSTEP_SERVER_STATE_FILE_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/memory/shared_memory.h"
#include "common/process/private_directory.h"
#include "server/state/file/fill_progress.h"

namespace lockstep::server {

// MappedFile is a file that one process at a time maps for reading and writing.
// Its content outlives the process, however that ends.
//
// Create() allocates all memory of the file: a later write cannot fail for lack
// of space. Huge pages are requested, and used if the file system has them.
//
// The file must lie in a PrivateDirectory; otherwise calls return the errors of
// that class.
//
// Threads: safe to share; the caller must guard the bytes.
// Owns:    the mapping and the lock on the file, but not the file itself,
//          which stays when the object goes.
class MappedFile {
 public:
  // Makes a file of zeros, mode 0600, under a temporary name; it appears at
  // `path` with Publish(), or not at all. Replaces the remainder of an earlier
  // process that was killed in between.
  //
  //   kAlreadyExists      there is a file at `path`
  //   kResourceExhausted  the file system has no room for `size` bytes, or it
  //                       is in memory, of which this process may not use so
  //                       much
  //   kUnavailable        another process is making this file
  //   kNotFound           no such directory
  //   kPermissionDenied   the directory is not ours to write to
  //   kCancelled          `progress` was stopped; the caller must have added
  //                       `size` to it
  static absl::StatusOr<std::unique_ptr<MappedFile>> Create(
      const std::string& path, uint64_t size, FillProgress* progress = nullptr);

  // Makes zeros in the memory of this process, under no name: Publish() does
  // nothing, and nothing outlives the process.
  //
  //   kResourceExhausted  this process may not use so much memory
  //   kCancelled          as in Create()
  static absl::StatusOr<std::unique_ptr<MappedFile>> InOwnMemory(
      uint64_t size, FillProgress* progress = nullptr);

  // Maps an existing file as a whole, without reading it into memory. Completes
  // a Publish() in which a process was killed.
  //
  //   kNotFound            no such file
  //   kPermissionDenied    a symbolic link, no regular file, or one that
  //                        belongs to or can be opened by others
  //   kDataLoss            shorter than `min_size`
  //   kUnavailable         another process has it open
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(
      const std::string& path, uint64_t min_size);

  // Deletes the file at `path`, and what a process that was killed while it
  // made such a file has left. A process that has the file mapped keeps the
  // memory; one that still makes it is not disturbed. A path without a file is
  // no error.
  //
  //   kPermissionDenied  the directory is not ours
  static absl::Status Remove(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Gives a created file its name. Must be called at most once.
  //
  //   kAlreadyExists  another process made a file at `path`
  absl::Status Publish();

  absl::Span<std::byte> bytes() const { return bytes_; }

  // Brings all bytes into memory now, so that page faults do not slow the first
  // step down. Takes as long as reading the file.
  void Load();

  // The file for processes that read it while this one has it open; it must
  // have a name. Its first `proof_size` bytes are the proof and must not
  // change.
  SharedFile Share(size_t proof_size) const;

 private:
  MappedFile(std::string path, std::string name, int fd,
             std::optional<PrivateDirectory> directory)
      : path_(std::move(path)),
        name_(std::move(name)),
        fd_(fd),
        directory_(std::move(directory)) {}

  absl::Status Lock();
  absl::Status CheckStillTemporary();
  absl::Status Allocate(uint64_t size, FillProgress* progress);
  absl::Status Resize(uint64_t size);
  absl::Status Map(uint64_t size);
  absl::Status CheckOwnership();
  std::string TemporaryName() const;
  int directory_fd() const { return directory_->fd(); }

  const std::string path_;                           // empty: in own memory
  const std::string name_;                           // in its directory
  const int fd_;                                     // -1: in own memory
  const std::optional<PrivateDirectory> directory_;  // none: likewise
  bool temporary_ = false;  // Publish() is still to come
  absl::Span<std::byte> bytes_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_FILE_MAPPED_FILE_H_
