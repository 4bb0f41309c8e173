#include "common/rpc/security/certificates/certificate_maker.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/security/certificates/certificate_facts.h"
#include "common/rpc/security/certificates/openssl_types.h"
#include "openssl/bn.h"
#include "openssl/ec.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/rand.h"
#include "openssl/x509v3.h"

namespace lockstep {
namespace {

constexpr int kSerialBytes = 16;
constexpr size_t kLongestCommonName = 64;

absl::Status Failed(absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("cannot ", what, ": ", OpenSslError()));
}

bool SetRandomSerial(ASN1_INTEGER* serial) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return false;
  bytes[0] = (bytes[0] & 0x7f) | 0x40;  // positive, and of one length
  const std::unique_ptr<BIGNUM, void (*)(BIGNUM*)> number(
      BN_bin2bn(bytes, sizeof(bytes), nullptr), BN_free);
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), serial) != nullptr;
}

bool AddExtension(X509* certificate, X509V3_CTX& context, int id,
                  const std::string& value) {
  const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()),
      X509_EXTENSION_free);
  return extension != nullptr &&
         X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Adds the names without X509V3_EXT_conf_nid(), which takes a comma in a name
// for the beginning of the next one: a name could smuggle in another.
bool AddNames(X509* certificate, const CertificateRequest& request) {
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names(
      sk_GENERAL_NAME_new_null(), GENERAL_NAMES_free);
  const auto add = [&](int type, const std::string& text) {
    std::unique_ptr<GENERAL_NAME, void (*)(GENERAL_NAME*)> name(
        GENERAL_NAME_new(), GENERAL_NAME_free);
    // GENERAL_NAME_set0_value() takes ownership.
    ASN1_IA5STRING* value = ASN1_IA5STRING_new();
    ASN1_STRING_set(value, text.data(), static_cast<int>(text.size()));
    GENERAL_NAME_set0_value(name.get(), type, value);
    sk_GENERAL_NAME_push(names.get(), name.release());
  };
  for (const std::string& uri : request.uris) add(GEN_URI, uri);
  for (const std::string& host : request.hosts) {
    // Null for a host that is no address in numbers.
    ASN1_OCTET_STRING* address = a2i_IPADDRESS(host.c_str());
    if (address == nullptr) {
      add(GEN_DNS, host);
      continue;
    }
    GENERAL_NAME* name = GENERAL_NAME_new();
    GENERAL_NAME_set0_value(name, GEN_IPADD, address);
    sk_GENERAL_NAME_push(names.get(), name);
  }
  ERR_clear_error();  // of hosts that are no addresses
  return sk_GENERAL_NAME_num(names.get()) == 0 ||
         X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0,
                           X509V3_ADD_DEFAULT) == 1;
}

// Returns a certificate without extensions and signature; null, and an error of
// OpenSSL, on failure.
X509Ptr Blank(EVP_PKEY* key, absl::string_view common_name,
              const Validity& validity) {
  X509Ptr certificate(X509_new());
  // RFC 5280's limit; the common name is only for people.
  const std::string name(common_name.substr(0, kLongestCommonName));
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const bool made = X509_set_version(certificate.get(), 2) == 1 &&  // means 3
                    SetRandomSerial(X509_get_serialNumber(certificate.get())) &&
                    ASN1_TIME_set(X509_getm_notBefore(certificate.get()),
                                  absl::ToTimeT(validity.from)) != nullptr &&
                    ASN1_TIME_set(X509_getm_notAfter(certificate.get()),
                                  absl::ToTimeT(validity.until)) != nullptr &&
                    X509_NAME_add_entry_by_txt(
                        subject, "CN", MBSTRING_UTF8,
                        reinterpret_cast<const unsigned char*>(name.data()),
                        static_cast<int>(name.size()), -1, 0) == 1 &&
                    X509_set_pubkey(certificate.get(), key) == 1;
  return made ? std::move(certificate) : nullptr;
}

absl::StatusOr<CertifiedKey> ToPem(X509* certificate, EVP_PKEY* key) {
  const BioPtr certificate_bio(BIO_new(BIO_s_mem()));
  // Secure memory is wiped when it is freed.
  const BioPtr key_bio(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_X509(certificate_bio.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr,
                               nullptr) != 1) {
    return Failed("write a certificate");
  }
  return CertifiedKey{ContentsOf(certificate_bio.get()),
                      ContentsOf(key_bio.get())};
}

struct Authority {
  X509Ptr certificate;
  KeyPtr key;
};

absl::StatusOr<Authority> ReadAuthority(const CertifiedKey& pem) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<X509Ptr> certificates,
                            ReadCertificates(pem.certificate, "the authority"));
  KeyPtr key = ReadKey(pem.key);
  if (key == nullptr ||
      X509_check_private_key(certificates[0].get(), key.get()) != 1) {
    OpenSslError();
    return absl::InvalidArgumentError(
        "the authority's key does not fit its certificate");
  }
  return Authority{std::move(certificates[0]), std::move(key)};
}

}  // namespace

absl::StatusOr<CertifiedKey> MakeAuthority(absl::string_view common_name,
                                           const Validity& validity) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("make a key");
  const X509Ptr made = Blank(key.get(), common_name, validity);
  if (made == nullptr) return Failed("make an authority");
  X509V3_CTX context = {};
  // Issuer and subject are the same: the authority signs itself.
  X509V3_set_ctx(&context, made.get(), made.get(), nullptr, nullptr, 0);
  if (X509_set_issuer_name(made.get(), X509_get_subject_name(made.get())) !=
          1 ||
      !AddExtension(made.get(), context, NID_basic_constraints,
                    "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(made.get(), context, NID_key_usage,
                    "critical,keyCertSign,cRLSign") ||
      !AddExtension(made.get(), context, NID_subject_key_identifier, "hash") ||
      X509_sign(made.get(), key.get(), EVP_sha256()) == 0) {
    return Failed("sign an authority");
  }
  return ToPem(made.get(), key.get());
}

absl::StatusOr<CertifiedKey> MakeCertificate(const CertifiedKey& authority,
                                             const CertificateRequest& request,
                                             const Validity& validity) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Authority signer, ReadAuthority(authority));
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("make a key");
  // No peer trusts it after its authority's end, and people look at its own
  // end.
  const Validity within = {
      validity.from,
      std::min(validity.until,
               ToTime(X509_get0_notAfter(signer.certificate.get())))};
  const X509Ptr made = Blank(key.get(), request.common_name, within);
  if (made == nullptr) return Failed("make a certificate");
  X509V3_CTX context = {};
  X509V3_set_ctx(&context, signer.certificate.get(), made.get(), nullptr,
                 nullptr, 0);
  const std::string usage =
      absl::StrCat(request.for_servers ? "serverAuth" : "",
                   request.for_servers && request.for_clients ? "," : "",
                   request.for_clients ? "clientAuth" : "");
  if (X509_set_issuer_name(
          made.get(), X509_get_subject_name(signer.certificate.get())) != 1 ||
      !AddExtension(made.get(), context, NID_basic_constraints,
                    "critical,CA:FALSE") ||
      !AddExtension(made.get(), context, NID_key_usage,
                    "critical,digitalSignature") ||
      (!usage.empty() &&
       !AddExtension(made.get(), context, NID_ext_key_usage, usage)) ||
      !AddExtension(made.get(), context, NID_subject_key_identifier, "hash") ||
      !AddExtension(made.get(), context, NID_authority_key_identifier,
                    "keyid") ||
      !AddNames(made.get(), request) ||
      X509_sign(made.get(), signer.key.get(), EVP_sha256()) == 0) {
    return Failed("sign a certificate");
  }
  return ToPem(made.get(), key.get());
}

}  // namespace lockstep
