#include "deploy/cli/config/connection_probe.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace lockstep::cli {
namespace {

// Returns 0, or an errno; ETIMEDOUT also after `timeout`.
int Connect(const addrinfo& address, absl::Duration timeout) {
  const int fd =
      socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  int error = 0;
  if (connect(fd, address.ai_addr, address.ai_addrlen) != 0) error = errno;
  if (error == EINPROGRESS) {
    pollfd writable = {fd, POLLOUT, 0};
    // poll() returns at once for 0, and waits without end for a negative time.
    const auto millis = static_cast<int>(std::clamp(
        absl::ToInt64Milliseconds(timeout), int64_t{1}, int64_t{3'600'000}));
    error = ETIMEDOUT;
    socklen_t size = sizeof(error);
    if (poll(&writable, 1, millis) == 1) {
      // Also a connection that failed is writable; the socket has its errno.
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  close(fd);
  return error;
}

std::string Describe(int error, absl::Duration timeout) {
  switch (error) {
    case 0:
      return "yes";
    case ECONNREFUSED:
      return "refused";
    case ETIMEDOUT:
      return absl::StrCat("no answer in ", absl::FormatDuration(timeout));
    default:
      // strerror() is not safe in several threads.
      return strerrordesc_np(error);
  }
}

}  // namespace

ProbeResult ProbeConnection(const HostPort& address, absl::Duration timeout) {
  addrinfo hints = {};
  // Otherwise each address is listed once for each type of socket.
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(
      address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (failed == EAI_NONAME) return {false, "no such name"};
  if (failed != 0) return {false, gai_strerror(failed)};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found,
                                                             freeaddrinfo);
  // The last address decides the text if all of them fail.
  int error = EHOSTUNREACH;
  for (; found != nullptr && error != 0; found = found->ai_next) {
    error = Connect(*found, timeout);
  }
  return {error == 0, Describe(error, timeout)};
}

}  // namespace lockstep::cli
