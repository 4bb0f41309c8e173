#ifndef LOCKSTEP_COMMON_RPC_SECURITY_TRANSPORT_SERVED_FILE_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_TRANSPORT_SERVED_FILE_H_

#include <ctime>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// ServedFile is a file in memory with a path that only this process can open.
// gRPC's watcher of certificates reads its files repeatedly without checks;
// from this one it gets only checked contents, and each version as a whole:
// Replace() puts a new file in the place of the old one.
//
// Threads: Replace() must not be called by two threads at once.
class ServedFile {
 public:
  // Errors of the system.
  static absl::StatusOr<std::unique_ptr<ServedFile>> Make(
      absl::string_view contents);
  ~ServedFile();
  ServedFile(const ServedFile&) = delete;
  ServedFile& operator=(const ServedFile&) = delete;

  const std::string& path() const { return path_; }

  // Readers that opened the path earlier keep the old contents. The time of the
  // last change differs, which the watcher needs to notice that it has read
  // from two files. Errors of the system; the old contents then stay.
  absl::Status Replace(absl::string_view contents);

 private:
  explicit ServedFile(int fd);

  const int fd_;
  const std::string path_;
  std::time_t changed_ = 1;  // seconds; only the difference matters
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_TRANSPORT_SERVED_FILE_H_
