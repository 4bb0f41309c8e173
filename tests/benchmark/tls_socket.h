#ifndef LOCKSTEP_TESTS_BENCHMARK_TLS_SOCKET_H_
#define LOCKSTEP_TESTS_BENCHMARK_TLS_SOCKET_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "openssl/ssl.h"

namespace lockstep::benchmark {

// TlsSocket is OpenSSL's TLS 1.3 on a connected socket, with the cipher that
// OpenSSL prefers. It encrypts as a real one does, but checks no certificate.
//
// Threads: not thread-safe.
// Borrows: the socket.
// Errors:  kUnavailable, with OpenSSL's text.
class TlsSocket {
 public:
  // Shakes hands. The server makes a certificate of its own.
  static absl::StatusOr<std::unique_ptr<TlsSocket>> Make(int fd,
                                                         bool is_server);

  absl::Status Send(absl::Span<const std::byte> bytes);
  // Fills `bytes`.
  absl::Status Receive(absl::Span<std::byte> bytes);

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_TLS_SOCKET_H_
