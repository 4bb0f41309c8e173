#include "common/rpc/security/certificates/peer_probe.h"

#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/ssl.h"

namespace lockstep {
namespace {

constexpr unsigned char kHttp2[] = "\x02h2";  // gRPC demands it
constexpr size_t kHttp2Bytes = 3;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Keeps SIGPIPE from the calling thread: OpenSSL writes to a connection that
// the server may have closed, and the signal would end the process.
class SigpipeBlock {
 public:
  SigpipeBlock() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeBlock() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    // A write sends the signal to its own thread, where it waits.
    const timespec at_once = {};
    sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

absl::StatusOr<Socket> Connect(const std::string& host, int port,
                               absl::Duration timeout) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (failed != 0) {
    return absl::NotFoundError(absl::StrCat(
        "the name ", host, " does not resolve: ", gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  int error = ECONNREFUSED;
  // Tries all addresses, as gRPC does; the error of the last one is reported.
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    Socket made(socket(next->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (made.fd() < 0) continue;
    const timeval limit = absl::ToTimeval(timeout);
    // Linux applies the limit of sending to connect() too.
    setsockopt(made.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    setsockopt(made.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (connect(made.fd(), next->ai_addr, next->ai_addrlen) == 0) return made;
    error = errno;
  }
  return absl::UnavailableError(std::strerror(error));
}

std::string ChainOf(SSL* connection) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  const STACK_OF(X509)* chain = SSL_get_peer_cert_chain(connection);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    PEM_write_bio_X509(bio.get(), sk_X509_value(chain, i));
  }
  return ContentsOf(bio.get());
}

// The reason why SSL_connect() returned `done`; `error` is its errno.
absl::Status HandshakeError(const SSL* connection, int done, int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) {
    ERR_clear_error();
    return absl::DeadlineExceededError("no answer to a TLS handshake");
  }
  // A server that ends, or has no room for another connection, has said nothing
  // about TLS.
  const bool ended = SSL_get_error(connection, done) == SSL_ERROR_SYSCALL ||
                     ERR_GET_REASON(ERR_peek_last_error()) ==
                         SSL_R_UNEXPECTED_EOF_WHILE_READING;
  const std::string words = OpenSslError();
  if (ended) {
    return absl::UnavailableError(
        "the server ended the connection during the TLS handshake");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the server speaks no TLS 1.3: ", words));
}

void UseOwn(SSL_CTX* context, const TlsFiles& own) {
  const KeyPtr key = ReadKey(own.key);
  const auto certificates = ReadCertificates(own.certificate, "tls.crt");
  // Without a usable certificate the probe still shows that of the server.
  if (key == nullptr || !certificates.ok()) return;
  SSL_CTX_use_certificate(context, certificates->front().get());
  // The server may know only the authority at the end of the chain.
  for (size_t i = 1; i < certificates->size(); ++i) {
    SSL_CTX_add1_chain_cert(context, (*certificates)[i].get());
  }
  SSL_CTX_use_PrivateKey(context, key.get());
}

absl::Status NoMemory() {
  return absl::ResourceExhaustedError(
      "there is no memory for a TLS connection; free memory, or raise the "
      "limit of this process (ulimit -v)");
}

}  // namespace

absl::StatusOr<PeerShown> ProbePeer(const std::string& host, int port,
                                    const TlsFiles* own,
                                    absl::Duration timeout) {
  const SigpipeBlock block;
  LOCKSTEP_ASSIGN_OR_RETURN(const Socket socket, Connect(host, port, timeout));
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(
      SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (context == nullptr) return NoMemory();
  // No verification: the probe must also show a certificate that would be
  // refused.
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  if (own != nullptr) UseOwn(context.get(), *own);
  const std::unique_ptr<SSL, void (*)(SSL*)> connection(SSL_new(context.get()),
                                                        SSL_free);
  if (connection == nullptr) return NoMemory();
  SSL_set_alpn_protos(connection.get(), kHttp2, kHttp2Bytes);
  SSL_set_fd(connection.get(), socket.fd());
  ERR_clear_error();
  errno = 0;  // OpenSSL sets it only for errors of the socket
  if (const int done = SSL_connect(connection.get()); done != 1) {
    return HandshakeError(connection.get(), done, errno);
  }
  PeerShown shown;
  shown.chain = ChainOf(connection.get());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<X509Ptr> certificates,
                            ReadCertificates(shown.chain, "the server"));
  shown.facts = FactsOf(certificates.front().get());
  // The server's verdict arrives after the handshake: its first HTTP/2 frame,
  // an alert, or the end of the connection.
  char byte = 0;
  if (SSL_read(connection.get(), &byte, 1) != 1) {
    const std::string error = OpenSslError();
    shown.refusal = error == "unknown error" ? "connection closed" : error;
  }
  ERR_clear_error();
  return shown;
}

}  // namespace lockstep
