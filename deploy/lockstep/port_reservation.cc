#include "deploy/lockstep/port_reservation.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// Binds a port of all addresses, of IPv6 and of IPv4 where both exist. Returns
// the socket, or -1.
int BindAnyPort(int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  const int off = 0;
  sockaddr_storage address = {};
  address.ss_family = static_cast<sa_family_t>(family);
  const socklen_t size =
      family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  const bool bound =
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      (family != AF_INET6 ||
       setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0) &&
      bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0;
  if (bound) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// The port that `fd` is bound to, in the same place for both families.
int BoundPort(int fd) {
  sockaddr_in6 address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohs(address.sin6_port);
}

}  // namespace

absl::StatusOr<PortReservation> PortReservation::Create() {
  int fd = BindAnyPort(AF_INET6);
  if (fd < 0) fd = BindAnyPort(AF_INET);
  if (fd < 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no free TCP port can be taken: ", strerror(errno),
        "; give ports instead of 0 in the cluster file, or free some"));
  }
  return PortReservation(fd, BoundPort(fd));
}

PortReservation::PortReservation(PortReservation&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

PortReservation& PortReservation::operator=(PortReservation&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(port_, other.port_);
  return *this;
}

PortReservation::~PortReservation() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace lockstep
