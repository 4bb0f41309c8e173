#include "common/rpc/tcp_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/cluster/host_port.h"

namespace lockstep {
namespace {

// For files, logs, pipes, and connections that this process opens itself.
constexpr size_t kOwnDescriptors = 256;
constexpr size_t kDescriptorsOfOne = 2;  // socket and watched duplicate
constexpr int kBacklog = 1024;
constexpr int kEventsAtOnce = 64;
// Pause before a retry when there are no free descriptors.
constexpr int kPauseMillis = 50;

absl::Status CannotListen(const std::string& host, int port,
                          const std::string& why) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", HostPort{host, port}.ToString(), ": ",
                   why, "; free the port or give another address"));
}

// Returns the address without its port; for IPv6 the network, because one host
// can have any number of addresses in it.
std::string PeerOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return text;
  }
  if (address.ss_family != AF_INET6) return "";
  in6_addr v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    inet_ntop(AF_INET, &v6.s6_addr[12], text, sizeof(text));
    return text;
  }
  std::memset(&v6.s6_addr[8], 0, 8);
  inet_ntop(AF_INET6, &v6, text, sizeof(text));
  return absl::StrCat(text, "/64");
}

// Zero where the socket has no port.
int PortOf(int socket) {
  sockaddr_storage bound = {};
  socklen_t length = sizeof(bound);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return 0;
  }
  return ntohs(bound.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                   : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

// Returns a listening socket, or -1 and errno.
int Open(const addrinfo& where, int port) {
  sockaddr_storage address = {};
  std::memcpy(&address, where.ai_addr, where.ai_addrlen);
  const bool v6 = where.ai_family == AF_INET6;
  // getaddrinfo() was called without a port, which the first address may
  // choose.
  (v6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
      : reinterpret_cast<sockaddr_in&>(address).sin_port) =
      htons(static_cast<uint16_t>(port));
  const int socket =
      ::socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  const int on = 1;
  const int off = 0;
  // Allows a port with connections of an earlier process, but not one with
  // another listener.
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // "[::]" includes the IPv4 addresses.
  if (v6) setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (bind(socket, reinterpret_cast<const sockaddr*>(&address),
           where.ai_addrlen) == 0 &&
      listen(socket, kBacklog) == 0) {
    return socket;
  }
  // close() may change errno, which the caller reads.
  const int error = errno;
  close(socket);
  errno = error;
  return -1;
}

bool OutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS ||
         error == ENOMEM;
}

}  // namespace

ConnectionLimits ConnectionLimits::For(size_t descriptors) {
  const size_t left =
      std::max(descriptors, kOwnDescriptors + 64) - kOwnDescriptors;
  ConnectionLimits limits;
  limits.all = std::min(limits.all, left / kDescriptorsOfOne);
  // One peer alone must not use up the connections of all others.
  limits.of_one_address = limits.all / 2;
  return limits;
}

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Listen(
    const std::string& address, const ConnectionLimits& limits) {
  LOCKSTEP_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  std::unique_ptr<TcpListener> listener(new TcpListener(limits));
  absl::Status bound = listener->Bind(parsed.host, parsed.port);
  if (!bound.ok() && parsed.host == "::" && listener->port_ == parsed.port) {
    bound = listener->Bind("0.0.0.0", parsed.port);  // no IPv6 here
  }
  LOCKSTEP_RETURN_IF_ERROR(bound);
  listener->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  listener->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event = {EPOLLIN, {.fd = listener->wake_}};
  if (listener->wake_ < 0 || epoll_ctl(listener->epoll_, EPOLL_CTL_ADD,
                                       listener->wake_, &event) != 0) {
    return CannotListen(parsed.host, parsed.port, std::strerror(errno));
  }
  return listener;
}

absl::Status TcpListener::Bind(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (failed != 0) return CannotListen(host, port, gai_strerror(failed));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  port_ = port;
  int error = EADDRNOTAVAIL;
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    const int socket = Open(*next, port_);
    if (socket >= 0) {
      listeners_.push_back(socket);
      // With port 0, the first address gets a free port, and the others use it
      // too.
      port_ = PortOf(socket);
      continue;
    }
    // A machine may lack one of the protocols. A port that is taken on one
    // address belongs to another process.
    error = errno;
    if (error == EADDRINUSE || OutOfDescriptors(error)) break;
  }
  if (listeners_.empty() || error == EADDRINUSE || OutOfDescriptors(error)) {
    return CannotListen(host, port,
                        error == EADDRINUSE ? "the port is taken"
                        : error == EADDRNOTAVAIL
                            ? "the host is not this machine"
                            : std::strerror(error));
  }
  return absl::OkStatus();
}

TcpListener::~TcpListener() {
  Stop();
  for (const int listener : listeners_) close(listener);
  MutexLock lock(mutex_);
  for (const auto& [duplicate, peer] : open_) close(duplicate);
  if (wake_ >= 0) close(wake_);
  if (epoll_ >= 0) close(epoll_);
}

void TcpListener::Start(Take take) {
  Watch(true);
  thread_ = std::thread([this, take = std::move(take)] { Run(take); });
}

void TcpListener::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
  thread_.join();
  // New connections must be refused, not wait in the kernel's queue.
  for (const int listener : listeners_) close(listener);
  listeners_.clear();
}

size_t TcpListener::connections() const {
  MutexLock lock(mutex_);
  return open_.size();
}

void TcpListener::Watch(bool on) {
  for (const int listener : listeners_) {
    epoll_event event = {EPOLLIN, {.fd = listener}};
    epoll_ctl(epoll_, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener, &event);
  }
}

void TcpListener::Run(const Take& take) {
  bool listens = true;
  while (true) {
    epoll_event events[kEventsAtOnce];
    const int count =
        epoll_wait(epoll_, events, kEventsAtOnce, listens ? -1 : kPauseMillis);
    if (count < 0 && errno != EINTR) {
      spdlog::error("takes no connections any more: epoll_wait: {}",
                    std::strerror(errno));
      return;
    }
    // Handles closed connections first, because they free places.
    for (int i = 0; i < count; ++i) {
      if ((events[i].events & EPOLLIN) == 0) Forget(events[i].data.fd);
    }
    bool enough = true;
    for (int i = 0; i < count; ++i) {
      if ((events[i].events & EPOLLIN) == 0) continue;
      if (events[i].data.fd == wake_) return;
      enough = AcceptAll(events[i].data.fd, take) && enough;
    }
    if (listens && !enough) {
      Watch(listens = false);
    } else if (!listens && count <= 0) {
      // Accepts again after a pause without events, when descriptors may be
      // free.
      Watch(listens = true);
    }
  }
}

bool TcpListener::AcceptAll(int listener, const Take& take) {
  while (true) {
    sockaddr_storage address = {};
    socklen_t length = sizeof(address);
    const int socket = accept4(listener, reinterpret_cast<sockaddr*>(&address),
                               &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      if (!Accepted(listener, socket, PeerOf(address), take)) return false;
      continue;
    }
    if (OutOfDescriptors(errno)) {
      WarnOutOfDescriptors(errno);
      return false;
    }
    // EAGAIN: the queue is empty. EBADF and the next: the listening socket is
    // closed. All other errors concern one connection only.
    if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
    if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) return true;
  }
}

bool TcpListener::Accepted(int listener, int socket, const Peer& peer,
                           const Take& take) {
  if (!HasRoom(peer)) {
    close(socket);
    return true;
  }
  // Watches a duplicate, because gRPC may close the socket at any time, and its
  // number would then name another connection.
  const int duplicate = fcntl(socket, F_DUPFD_CLOEXEC, 0);
  // No events requested: epoll always reports that both directions are shut
  // down.
  epoll_event event = {0, {.fd = duplicate}};
  if (duplicate < 0 ||
      epoll_ctl(epoll_, EPOLL_CTL_ADD, duplicate, &event) != 0) {
    WarnOutOfDescriptors(errno);
    close(socket);
    if (duplicate >= 0) close(duplicate);
    return false;
  }
  {
    MutexLock lock(mutex_);
    open_[duplicate] = peer;
    ++of_peer_[peer];
  }
  take(listener, socket);
  return true;
}

void TcpListener::WarnOutOfDescriptors(int error) {
  if (!warnings_.Take(Clock::Real().Now())) return;
  spdlog::warn("takes no new connections: {}{}", std::strerror(error),
               OutOfDescriptors(error)
                   ? "; raise the limit of open files (ulimit -n, LimitNOFILE)"
                   : "");
}

bool TcpListener::HasRoom(const Peer& peer) {
  size_t all = 0;
  size_t its = 0;
  {
    MutexLock lock(mutex_);
    all = open_.size();
    const auto found = of_peer_.find(peer);
    if (found != of_peer_.end()) its = found->second;
  }
  // The count cannot grow before this connection is added: only this thread
  // adds.
  if (all < limits_.all && its < limits_.of_one_address) return true;
  if (warnings_.Take(Clock::Real().Now())) {
    spdlog::warn(
        "closes a new connection of {}: {} are open, {} of them its own; the "
        "limits are {} and {}, more with a higher limit of open files",
        peer, all, its, limits_.all, limits_.of_one_address);
  }
  return false;
}

void TcpListener::Forget(int duplicate) {
  MutexLock lock(mutex_);
  const auto found = open_.find(duplicate);
  if (found == open_.end()) return;
  const auto of_peer = of_peer_.find(found->second);
  if (--of_peer->second == 0) of_peer_.erase(of_peer);
  open_.erase(found);
  // Before the close, which alone would not remove it from epoll: gRPC keeps
  // its own descriptor of the connection open until the calls on it have ended,
  // and epoll would report the connection without end.
  epoll_ctl(epoll_, EPOLL_CTL_DEL, duplicate, nullptr);
  close(duplicate);
}

}  // namespace lockstep
