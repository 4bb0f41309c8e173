#include "tests/benchmark/tls_socket.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/security/certificates/certificate_facts.h"
#include "common/rpc/security/certificates/certificate_maker.h"
#include "common/rpc/security/certificates/openssl_types.h"

namespace lockstep::benchmark {
namespace {

// Some records of 16 KiB.
constexpr size_t kReadAhead = 128 << 10;
constexpr int kGathered = 512 << 10;

absl::Status Failed(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", OpenSslError()));
}

absl::Status UseOwnCertificate(SSL_CTX* context) {
  const absl::Time now = absl::Now();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const CertifiedKey pair,
      MakeAuthority("benchmark", {now - absl::Hours(1), now + absl::Hours(1)}));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<X509Ptr> certificates,
                            ReadCertificates(pair.certificate, "benchmark"));
  const KeyPtr key = ReadKey(pair.key);
  if (SSL_CTX_use_certificate(context, certificates.at(0).get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return Failed("own certificate");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsSocket>> TlsSocket::Make(int fd,
                                                           bool is_server) {
  auto made = std::make_unique<TlsSocket>();
  made->context_.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* context = made->context_.get();
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadAhead);
  if (is_server) LOCKSTEP_RETURN_IF_ERROR(UseOwnCertificate(context));
  made->ssl_.reset(SSL_new(context));
  SSL* ssl = made->ssl_.get();
  // Records of one Send() go to the system together, as gRPC sends them.
  BIO* gathered = BIO_new(BIO_f_buffer());
  BIO_set_write_buffer_size(gathered, kGathered);
  SSL_set0_rbio(ssl, BIO_new_socket(fd, BIO_NOCLOSE));
  SSL_set0_wbio(ssl, BIO_push(gathered, BIO_new_socket(fd, BIO_NOCLOSE)));
  if ((is_server ? SSL_accept(ssl) : SSL_connect(ssl)) != 1) {
    return Failed("handshake");
  }
  return made;
}

absl::Status TlsSocket::Send(absl::Span<const std::byte> bytes) {
  size_t sent = 0;
  while (!bytes.empty()) {
    if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent) != 1) {
      return Failed("send");
    }
    bytes.remove_prefix(sent);
  }
  if (BIO_flush(SSL_get_wbio(ssl_.get())) != 1) return Failed("send");
  return absl::OkStatus();
}

absl::Status TlsSocket::Receive(absl::Span<std::byte> bytes) {
  size_t got = 0;
  while (!bytes.empty()) {
    if (SSL_read_ex(ssl_.get(), bytes.data(), bytes.size(), &got) != 1) {
      return Failed("receive");
    }
    bytes.remove_prefix(got);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::benchmark
