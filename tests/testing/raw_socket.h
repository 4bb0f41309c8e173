#ifndef LOCKSTEP_TESTS_TESTING_RAW_SOCKET_H_
#define LOCKSTEP_TESTS_TESTING_RAW_SOCKET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

namespace lockstep::testing {

// RawSocket is a TCP connection to 127.0.0.1 without a protocol of its own.
class RawSocket {
 public:
  // `own` is the local address, a loopback address.
  explicit RawSocket(int port, const char* own = "127.0.0.1",
                     bool connect_now = true)
      : port_(port), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in from = {};
    from.sin_family = AF_INET;
    inet_pton(AF_INET, own, &from.sin_addr);
    bind(socket_, reinterpret_cast<const sockaddr*>(&from), sizeof(from));
    if (connect_now) Connect();
  }
  ~RawSocket() {
    if (socket_ >= 0) close(socket_);
  }
  RawSocket(RawSocket&& other) noexcept
      : port_(other.port_), socket_(std::exchange(other.socket_, -1)) {}
  RawSocket& operator=(RawSocket&&) = delete;

  bool Connect() const {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port_));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(socket_, reinterpret_cast<const sockaddr*>(&to),
                   sizeof(to)) == 0;
  }

  // True if everything was sent. Waits as long as the peer reads something
  // within `millis`.
  bool Send(const std::string& bytes, int millis = 10'000) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      pollfd writable = {socket_, POLLOUT, 0};
      if (poll(&writable, 1, millis) != 1) return false;
      const ssize_t count =
          send(socket_, bytes.data() + sent, bytes.size() - sent,
               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && errno != EAGAIN) return false;
      if (count > 0) sent += static_cast<size_t>(count);
    }
    return true;
  }

  // Returns the next received bytes; empty if the peer has closed, or after
  // `millis` without a byte.
  std::string Receive(int millis = 10'000) const {
    pollfd readable = {socket_, POLLIN, 0};
    if (poll(&readable, 1, millis) != 1) return "";
    char buffer[4096];
    const ssize_t count = recv(socket_, buffer, sizeof(buffer), 0);
    return {buffer, count > 0 ? static_cast<size_t>(count) : 0};
  }

  // True if the peer has closed the connection and everything that it sent has
  // been received.
  bool HasEnded() const {
    char byte = 0;
    const ssize_t count = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN);
  }

  // True if the peer closes the connection within `millis`; received bytes are
  // dropped.
  bool IsClosedWithin(int millis) const {
    while (true) {
      pollfd readable = {socket_, POLLIN, 0};
      if (poll(&readable, 1, millis) != 1) return false;
      char buffer[4096];
      if (recv(socket_, buffer, sizeof(buffer), 0) <= 0) return true;
    }
  }

 private:
  int port_;
  int socket_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_RAW_SOCKET_H_
