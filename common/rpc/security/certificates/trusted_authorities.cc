#include "common/rpc/security/certificates/trusted_authorities.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/plain_text.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/x509_vfy.h"
#include "openssl/x509v3.h"

namespace lockstep {
namespace {

constexpr size_t kLongestNames = 200;  // of authorities in a message

// Lists of revoked certificates are optional: neither an authority without a
// list nor an expired list makes certificates invalid.
int AllowMissingLists(int ok, X509_STORE_CTX* context) {
  if (ok == 1) return 1;
  const int error = X509_STORE_CTX_get_error(context);
  if (error != X509_V_ERR_UNABLE_TO_GET_CRL &&
      error != X509_V_ERR_CRL_HAS_EXPIRED) {
    return 0;
  }
  X509_STORE_CTX_set_error(context, X509_V_OK);
  return 1;
}

absl::Status AddLists(absl::string_view revoked,
                      const std::vector<X509Ptr>& authorities,
                      X509_STORE* store) {
  const BioPtr bio = ReadFrom(revoked);
  int lists = 0;
  while (true) {
    const CrlPtr list(
        PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr));
    if (list == nullptr) break;
    bool is_signed = false;
    for (const X509Ptr& authority : authorities) {
      EVP_PKEY* key = X509_get0_pubkey(authority.get());
      is_signed = is_signed || X509_CRL_verify(list.get(), key) == 1;
    }
    if (!is_signed) {
      OpenSslError();
      return absl::InvalidArgumentError(
          "crl.pem has a list that no authority of ca.crt has signed");
    }
    X509_STORE_add_crl(store, list.get());
    ++lists;
  }
  // OpenSSL has no other sign for the end of the text. A damaged list after a
  // good one must not count as the end: its certificates would be trusted.
  const bool ended =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string error = OpenSslError();
  if (!ended) {
    return absl::InvalidArgumentError(absl::StrCat(
        "crl.pem has a damaged list of revoked certificates: ", error));
  }
  if (lists == 0) {
    return absl::InvalidArgumentError(
        "crl.pem has no list of revoked certificates in PEM format");
  }
  // Only with lists: otherwise each certificate would lack one.
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
  X509_STORE_set_verify_cb(store, &AllowMissingLists);
  return absl::OkStatus();
}

std::string Words(int error, const CertificateFacts& facts, absl::Time now,
                  const std::string& authorities) {
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: {
      const std::string trouble = ValidityTrouble(facts, now);
      // Otherwise the error is that of an authority in the chain.
      if (now < facts.not_before || now > facts.not_after) return trouble;
      return "is signed by an authority that is expired or not yet valid";
    }
    case X509_V_ERR_CERT_REVOKED:
      return "is revoked";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return absl::StrCat("is not signed by an authority of ca.crt, which has ",
                          authorities, ", but by ",
                          OneLine(facts.issuer, kLongestNames));
    case X509_V_ERR_INVALID_PURPOSE:
      return "is not made for this side of a connection (extended key usage)";
    default:
      return absl::StrCat("is refused: ", X509_verify_cert_error_string(error));
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TrustedAuthorities>>
TrustedAuthorities::Make(absl::string_view bundle, absl::string_view revoked) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<X509Ptr> certificates,
                            ReadCertificates(bundle, "ca.crt"));
  auto made = std::make_shared<TrustedAuthorities>();
  made->store_ = StorePtr(X509_STORE_new());
  for (const X509Ptr& certificate : certificates) {
    const CertificateFacts facts = FactsOf(certificate.get());
    if (!facts.is_authority) {
      return absl::InvalidArgumentError(
          absl::StrCat("ca.crt has the certificate of ", facts.Owner(),
                       ", which is no authority"));
    }
    X509_STORE_add_cert(made->store_.get(), certificate.get());
    // The first authority that expires ends trust in the peers that it has
    // signed.
    made->not_after_ = std::min(made->not_after_, facts.not_after);
    absl::StrAppend(&made->names_, made->names_.empty() ? "" : ", ",
                    OneLine(facts.subject, kLongestNames));
  }
  made->names_ = CutText(made->names_, kLongestNames);
  if (!revoked.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(
        AddLists(revoked, certificates, made->store_.get()));
  }
  return made;
}

absl::Status TrustedAuthorities::Check(absl::string_view chain, Side side,
                                       absl::Time now) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<X509Ptr> certificates,
                            ReadCertificates(chain, "the peer"));
  X509* leaf = certificates[0].get();
  const std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)> others(
      sk_X509_new_null(), [](STACK_OF(X509) * stack) { sk_X509_free(stack); });
  for (const X509Ptr& certificate : certificates) {
    // The leaf is among them, which OpenSSL ignores.
    sk_X509_push(others.get(), certificate.get());
  }
  const StoreContextPtr context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store_.get(), leaf, others.get()) !=
      1) {
    return absl::InternalError(OpenSslError());
  }
  X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(context.get());
  // The caller's time, so that tests need no real clock.
  X509_VERIFY_PARAM_set_time(rules, absl::ToTimeT(now));
  X509_STORE_CTX_set_purpose(context.get(), side == Side::kServer
                                                ? X509_PURPOSE_SSL_SERVER
                                                : X509_PURPOSE_SSL_CLIENT);
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(context.get());
  const CertificateFacts facts = FactsOf(leaf);
  // Errors that remain would be taken for those of the next TLS call of this
  // thread.
  ERR_clear_error();
  return absl::UnauthenticatedError(
      absl::StrCat("the certificate of ", facts.Owner(), " ",
                   Words(error, facts, now, names_)));
}

}  // namespace lockstep
