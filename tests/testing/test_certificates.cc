#include "tests/testing/test_certificates.h"

#include <memory>

#include "common/rpc/security/certificates/certificate_facts.h"
#include "common/rpc/security/certificates/openssl_types.h"
#include "gtest/gtest.h"
#include "openssl/bn.h"
#include "openssl/pem.h"
#include "openssl/x509.h"

namespace lockstep::testing {
namespace {

using TimePtr = std::unique_ptr<ASN1_TIME, void (*)(ASN1_TIME*)>;

TimePtr TimeOf(absl::Time time) {
  return TimePtr(ASN1_TIME_set(nullptr, absl::ToTimeT(time)), ASN1_TIME_free);
}

// False if `serial` is no number.
bool AddRevoked(X509_CRL* list, const std::string& serial,
                const ASN1_TIME* since) {
  BIGNUM* raw = nullptr;
  if (BN_hex2bn(&raw, serial.c_str()) == 0) return false;
  const std::unique_ptr<BIGNUM, void (*)(BIGNUM*)> number(raw, BN_free);
  const std::unique_ptr<ASN1_INTEGER, void (*)(ASN1_INTEGER*)> integer(
      BN_to_ASN1_INTEGER(number.get(), nullptr), ASN1_INTEGER_free);
  X509_REVOKED* revoked = X509_REVOKED_new();
  X509_REVOKED_set_serialNumber(revoked, integer.get());
  X509_REVOKED_set_revocationDate(revoked, const_cast<ASN1_TIME*>(since));
  return X509_CRL_add0_revoked(list, revoked) == 1;  // which owns it then
}

}  // namespace

std::string TestAuthority::Revoke(const std::vector<std::string>& serials,
                                  const Validity& validity) const {
  const X509Ptr signer =
      std::move(ReadCertificates(pair_.certificate, "the authority")->at(0));
  const KeyPtr key = ReadKey(pair_.key);
  const CrlPtr list(X509_CRL_new());
  const TimePtr from = TimeOf(validity.from);
  X509_CRL_set_version(list.get(), 1);  // means 2
  X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(signer.get()));
  X509_CRL_set1_lastUpdate(list.get(), from.get());
  X509_CRL_set1_nextUpdate(list.get(), TimeOf(validity.until).get());
  for (const std::string& serial : serials) {
    EXPECT_TRUE(AddRevoked(list.get(), serial, from.get())) << serial;
  }
  X509_CRL_sort(list.get());
  EXPECT_NE(X509_CRL_sign(list.get(), key.get(), EVP_sha256()), 0);
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_CRL(bio.get(), list.get());
  return ContentsOf(bio.get());
}

}  // namespace lockstep::testing
