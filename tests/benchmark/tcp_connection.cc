#include "tests/benchmark/tcp_connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace lockstep::benchmark {
namespace {

constexpr absl::Duration kConnectFor = absl::Seconds(30);
constexpr absl::Duration kRetryPause = absl::Milliseconds(20);

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

// Parses "127.0.0.1:port".
absl::StatusOr<sockaddr_in> Parse(const std::string& address) {
  const std::vector<std::string> parts = absl::StrSplit(address, ':');
  sockaddr_in out = {};
  int port = 0;
  out.sin_family = AF_INET;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port) || port < 0 ||
      port > 65535 ||
      inet_pton(AF_INET, parts[0].c_str(), &out.sin_addr) != 1) {
    return absl::UnavailableError(
        absl::StrCat(address, " is no IPv4 address and port"));
  }
  out.sin_port = htons(static_cast<uint16_t>(port));
  return out;
}

}  // namespace

TcpConnection::TcpConnection(int fd) : fd_(fd) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

TcpConnection::~TcpConnection() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<TcpConnection> TcpConnection::Connect(
    const std::string& address) {
  LOCKSTEP_ASSIGN_OR_RETURN(sockaddr_in target, Parse(address));
  const absl::Time deadline = absl::Now() + kConnectFor;
  while (true) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return SystemError("socket");
    TcpConnection connection(fd);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&target),
                sizeof(target)) == 0) {
      return connection;
    }
    if (absl::Now() > deadline) {
      return SystemError(absl::StrCat("connect to ", address));
    }
    absl::SleepFor(kRetryPause);
  }
}

absl::Status TcpConnection::Encrypt(bool is_server) {
  LOCKSTEP_ASSIGN_OR_RETURN(tls_, TlsSocket::Make(fd_, is_server));
  return absl::OkStatus();
}

absl::Status TcpConnection::Send(absl::Span<const std::byte> bytes) {
  if (tls_ != nullptr) return tls_->Send(bytes);
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return SystemError("send");
    bytes.remove_prefix(sent);
  }
  return absl::OkStatus();
}

absl::Status TcpConnection::Receive(absl::Span<std::byte> bytes) {
  if (tls_ != nullptr) return tls_->Receive(bytes);
  while (!bytes.empty()) {
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("receive");
    if (got == 0) return absl::UnavailableError("the peer closed");
    bytes.remove_prefix(got);
  }
  return absl::OkStatus();
}

std::string TcpConnection::CongestionControl() const {
  char name[64] = {};
  socklen_t size = sizeof(name) - 1;
  if (getsockopt(fd_, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0) {
    return "unknown";
  }
  return name;
}

absl::StatusOr<TcpListener> TcpListener::Listen(const std::string& address) {
  LOCKSTEP_ASSIGN_OR_RETURN(sockaddr_in own,
                            Parse(address.empty() ? "127.0.0.1:0" : address));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return SystemError("socket");
  TcpListener listener(fd);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0 ||
      listen(fd, SOMAXCONN) != 0) {
    return SystemError(absl::StrCat("listen on ", address));
  }
  return listener;
}

TcpListener::~TcpListener() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<TcpConnection> TcpListener::Accept() {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return SystemError("accept");
  return TcpConnection(fd);
}

std::string TcpListener::address() const {
  sockaddr_in own = {};
  socklen_t size = sizeof(own);
  getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size);
  return absl::StrCat("127.0.0.1:", ntohs(own.sin_port));
}

std::string LoopbackCongestionControl() {
  absl::StatusOr<TcpListener> listener = TcpListener::Listen("");
  if (!listener.ok()) return "unknown";
  absl::StatusOr<TcpConnection> connection =
      TcpConnection::Connect(listener->address());
  return connection.ok() ? connection->CongestionControl() : "unknown";
}

std::string SystemCongestionControl() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name;
  return file >> name ? name : "unknown";
}

}  // namespace lockstep::benchmark
