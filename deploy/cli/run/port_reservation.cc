#include "deploy/cli/run/port_reservation.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::cli {
namespace {

// Returns the socket, or -1 with errno.
int Bind(int family, const sockaddr* address, socklen_t size, int v6_only) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  const bool bound =
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      (family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only,
                                        sizeof(v6_only)) == 0) &&
      bind(fd, address, size) == 0;
  if (bound) return fd;
  // close() may change it.
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// Binds one port on all addresses, of IPv6 and of IPv4 if both exist.
int BindAnyPort(int family) {
  sockaddr_storage address = {};
  address.ss_family = static_cast<sa_family_t>(family);
  const socklen_t size =
      family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  // A socket of IPv6 without V6ONLY holds the port of IPv4, too.
  return Bind(family, reinterpret_cast<const sockaddr*>(&address), size, 0);
}

// Returns the address that `fd` is bound to; its family is 0 if there is none.
sockaddr_in6 BoundAddress(int fd) {
  sockaddr_in6 address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return {};
  }
  return address;
}

// Both families store the port at one offset.
int BoundPort(int fd) { return ntohs(BoundAddress(fd).sin6_port); }

in_addr_t V4Of(const sockaddr_in6& address) {
  sockaddr_in v4;
  memcpy(&v4, &address, sizeof(v4));
  return v4.sin_addr.s_addr;
}

// True if a server at `any` listens at `one`, too. One at [::] listens at the
// addresses of IPv4 as well.
bool Includes(const sockaddr_in6& any, const sockaddr_in6& one) {
  if (any.sin6_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&any.sin6_addr)) {
    return true;
  }
  if (any.sin6_family != one.sin6_family) return false;
  if (any.sin6_family == AF_INET6) {
    return IN6_ARE_ADDR_EQUAL(&any.sin6_addr, &one.sin6_addr);
  }
  return V4Of(any) == INADDR_ANY || V4Of(any) == V4Of(one);
}

}  // namespace

absl::StatusOr<PortReservation> PortReservation::Create() {
  // A kernel may lack IPv6.
  int fd = BindAnyPort(AF_INET6);
  if (fd < 0) fd = BindAnyPort(AF_INET);
  if (fd < 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no free TCP port can be taken: ", strerror(errno),
        "; give ports instead of 0 in the cluster file, or free some"));
  }
  return PortReservation(fd, BoundPort(fd));
}

absl::StatusOr<std::vector<PortReservation>> PortReservation::Take(
    const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = absl::StrCat(port);
  std::vector<PortReservation> taken;
  // A name that does not resolve is left to the program, which reports it.
  if (getaddrinfo(host.c_str(), service.c_str(), &hints, &found) != 0) {
    return taken;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found,
                                                               &freeaddrinfo);
  for (const addrinfo* entry = found; entry != nullptr;
       entry = entry->ai_next) {
    // V6ONLY, because the IPv4 addresses of the host are in the list
    // themselves.
    const int fd = Bind(entry->ai_family, entry->ai_addr, entry->ai_addrlen, 1);
    // An address of another family or machine is not reserved; the program
    // reports it.
    if (fd >= 0) {
      taken.push_back(PortReservation(fd, port));
    } else if (errno == EADDRINUSE) {
      return absl::InvalidArgumentError(
          "the port is taken: a process listens there; end it, or give another "
          "port, or 0 to have a free one chosen");
    } else if (errno == EACCES) {
      return absl::InvalidArgumentError(absl::StrCat(
          "this user may not listen on port ", port,
          "; give one above 1023, or 0 to have a free one chosen"));
    }
  }
  return taken;
}

bool PortReservation::Collides(const PortReservation& other) const {
  if (port_ != other.port_) return false;
  const sockaddr_in6 own = BoundAddress(fd_);
  const sockaddr_in6 others = BoundAddress(other.fd_);
  return Includes(own, others) || Includes(others, own);
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

}  // namespace lockstep::cli
