#ifndef LOCKSTEP_TESTS_BENCHMARK_TCP_CONNECTION_H_
#define LOCKSTEP_TESTS_BENCHMARK_TCP_CONNECTION_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tests/benchmark/tls_socket.h"

namespace lockstep::benchmark {

// TcpConnection is a connected stream socket on 127.0.0.1 with blocking calls.
//
// Threads: one thread may send while another receives.
// Owns:    the socket.
// Errors:  kUnavailable, with the system's text.
class TcpConnection {
 public:
  // Retries until a process listens, for half a minute.
  static absl::StatusOr<TcpConnection> Connect(const std::string& address);

  explicit TcpConnection(int fd);
  ~TcpConnection();
  TcpConnection(TcpConnection&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), tls_(std::move(other.tls_)) {}
  TcpConnection& operator=(TcpConnection&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(tls_, other.tls_);
    return *this;
  }

  // Encrypts from here on; both sides must call it. Then no thread may send
  // while another receives: use a connection for each direction.
  absl::Status Encrypt(bool is_server);

  absl::Status Send(absl::Span<const std::byte> bytes);
  // Fills `bytes`.
  absl::Status Receive(absl::Span<std::byte> bytes);

  // Returns the algorithm in use, e.g. "cubic"; "unknown" if the kernel does
  // not provide it.
  std::string CongestionControl() const;

 private:
  int fd_;
  std::unique_ptr<TlsSocket> tls_;  // null: plain
};

// TcpListener accepts connections on a port of 127.0.0.1.
class TcpListener {
 public:
  // An empty address takes any free port.
  static absl::StatusOr<TcpListener> Listen(const std::string& address);
  ~TcpListener();
  TcpListener(TcpListener&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)) {}

  absl::StatusOr<TcpConnection> Accept();
  std::string address() const;

 private:
  explicit TcpListener(int fd) : fd_(fd) {}

  int fd_;
};

// Returns the congestion control of connections on the loopback device, from
// the system's setting or from the route's.
std::string LoopbackCongestionControl();

// The system's setting alone.
std::string SystemCongestionControl();

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_TCP_CONNECTION_H_
