#include "common/rpc/security/transport/tls_verifiers.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/rpc/security/access_table.h"
#include "common/rpc/security/transport/transport_security.h"

namespace lockstep {
namespace {

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::TlsCustomVerificationCheckRequest;

std::vector<std::string> Texts(const std::vector<grpc::string_ref>& texts) {
  std::vector<std::string> copies;
  copies.reserve(texts.size());
  for (const grpc::string_ref& text : texts) {
    copies.emplace_back(text.data(), text.size());
  }
  return copies;
}

// OpenSSL's chain lacks the peer's own certificate on the server's side, so it
// is put first; a second copy on the client's side does no harm.
std::string ChainOf(TlsCustomVerificationCheckRequest& request) {
  const grpc::string_ref own = request.peer_cert();
  const grpc::string_ref chain = request.peer_cert_full_chain();
  return absl::StrCat(absl::string_view(own.data(), own.size()), "\n",
                      absl::string_view(chain.data(), chain.size()));
}

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.raw_code()),
          std::string(status.message())};
}

class ClientVerifier final : public ExternalCertificateVerifier {
 public:
  explicit ClientVerifier(std::shared_ptr<TransportSecurity> security)
      : security_(std::move(security)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* status) override {
    const absl::Status checked = security_->CheckChain(
        ChainOf(*request), TrustedAuthorities::Side::kClient);
    if (!checked.ok()) {
      const std::string sentence =
          absl::StrCat("a connection is refused: ", checked.message());
      if (security_->troubles().NoteHandshake(sentence)) {
        spdlog::error("{}", sentence);
      }
    }
    // True below: the verdict is there, and no callback will follow.
    *status = ToGrpc(checked);
    return true;
  }
  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<TransportSecurity> security_;
};

class ServerVerifier final : public ExternalCertificateVerifier {
 public:
  ServerVerifier(std::shared_ptr<TransportSecurity> security,
                 std::string address)
      : security_(std::move(security)), address_(std::move(address)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* status) override {
    absl::Status checked = security_->CheckChain(
        ChainOf(*request), TrustedAuthorities::Side::kServer);
    // Names count only in a certificate of a trusted authority.
    if (checked.ok()) {
      checked = security_->CheckReached(
          address_, {Texts(request->uri_names()), Texts(request->dns_names())});
    }
    if (!checked.ok()) {
      const std::string sentence =
          absl::StrCat("cannot trust ", address_, ": ", checked.message());
      if (security_->troubles().NoteHandshake(sentence)) {
        spdlog::error("{}", sentence);
      }
    }
    *status = ToGrpc(checked);
    return true;
  }
  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<TransportSecurity> security_;
  const std::string address_;
};

// Returns the first role of a caller, for a metric.
std::string RoleIn(const Caller& caller) {
  for (int i = 0; i < kRoles; ++i) {
    const Role role = static_cast<Role>(i);
    if ((caller.roles() & Bit(role)) != 0) return std::string(RoleName(role));
  }
  return "none";
}

class AccessProcessor final : public grpc::AuthMetadataProcessor {
 public:
  explicit AccessProcessor(std::shared_ptr<TransportSecurity> security)
      : security_(std::move(security)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata,
                       grpc::AuthContext* context, OutputMetadata* /*consumed*/,
                       OutputMetadata* /*response*/) override {
    const auto path = metadata.find(":path");
    const absl::string_view method =
        path == metadata.end()
            ? absl::string_view()
            : absl::string_view(path->second.data(), path->second.size());
    const Caller caller = CallerOf(*context, security_.get());
    const absl::Status status =
        caller.is_checked()
            ? CheckMayCall(caller, method)
            : absl::UnauthenticatedError("a call without a certificate");
    if (status.ok()) return grpc::Status::OK;
    // Callers choose the path: unknown ones share a label, or they could add
    // metrics without end.
    const std::string known(RolesThatMay(method) == 0 ? "other" : method);
    if (security_->troubles().NoteDenied(known, RoleIn(caller),
                                         std::string(status.message()))) {
      spdlog::warn("refused: {}", std::string(status.message()));
    }
    return ToGrpc(status);
  }

 private:
  const std::shared_ptr<TransportSecurity> security_;
};

}  // namespace

std::shared_ptr<grpc::experimental::CertificateVerifier> MakeClientVerifier(
    std::shared_ptr<TransportSecurity> security) {
  return ExternalCertificateVerifier::Create<ClientVerifier>(
      std::move(security));
}

std::shared_ptr<grpc::experimental::CertificateVerifier> MakeServerVerifier(
    std::shared_ptr<TransportSecurity> security, std::string address) {
  return ExternalCertificateVerifier::Create<ServerVerifier>(
      std::move(security), std::move(address));
}

std::shared_ptr<grpc::AuthMetadataProcessor> MakeAccessProcessor(
    std::shared_ptr<TransportSecurity> security) {
  return std::make_shared<AccessProcessor>(std::move(security));
}

}  // namespace lockstep
