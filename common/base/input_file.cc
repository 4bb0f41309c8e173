#include "common/base/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/steady_deadline.h"

namespace lockstep {
namespace {

constexpr size_t kBlock = size_t{64} << 10;

// Waits until a read of `fd` has bytes, the end or an error; false at
// `deadline`. A file has them at once, a pipe only when a writer has come.
bool AwaitInput(int fd, std::chrono::steady_clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd input{fd, POLLIN, 0};
    const int ready =
        poll(&input, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return ready != 0;
  }
}

}  // namespace

absl::StatusOr<std::string> ReadInputFile(const std::string& path, size_t limit,
                                          absl::Duration patience) {
  // Non-blocking, so that opening a named pipe does not wait for a writer.
  const int fd =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return absl::NotFoundError(strerror(errno));
  const absl::Cleanup closed = [fd] { close(fd); };
  const auto deadline = SteadyDeadline(std::min(patience, absl::Hours(1)));
  std::string text;
  while (text.size() < limit) {
    if (!AwaitInput(fd, deadline)) {
      return absl::NotFoundError(absl::StrCat(
          "it is no file but a pipe or a device, and has not ended within ",
          absl::FormatDuration(patience)));
    }
    const size_t before = text.size();
    text.resize(std::min(limit, before + kBlock));
    const ssize_t got = read(fd, text.data() + before, text.size() - before);
    const int error = errno;
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) break;
    if (got < 0 && error != EINTR && error != EAGAIN) {
      return absl::NotFoundError(strerror(error));
    }
  }
  return text;
}

}  // namespace lockstep
