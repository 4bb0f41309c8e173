#include "common/rpc/security/certificates/certificate_facts.h"

#include <arpa/inet.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text/plain_text.h"
#include "openssl/bn.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/x509v3.h"

namespace lockstep {
namespace {

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

std::string TextOf(const X509_NAME* name) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0,
                     XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  return ContentsOf(bio.get());
}

std::string AddressOf(const ASN1_STRING* bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  const int size = ASN1_STRING_length(bytes);
  // Anyone can write other sizes into a certificate.
  if (size != 4 && size != 16) return "";
  inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text,
            sizeof(text));
  return text;
}

void ReadNames(X509* certificate, CertificateFacts& facts) {
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(
          certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  if (names == nullptr) return;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) {
      facts.names.uris.push_back(TextOf(name->d.uniformResourceIdentifier));
    } else if (name->type == GEN_DNS) {
      facts.names.dns.push_back(TextOf(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      facts.addresses.push_back(AddressOf(name->d.iPAddress));
    }
  }
}

std::string SerialOf(const X509* certificate) {
  const std::unique_ptr<BIGNUM, void (*)(BIGNUM*)> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr),
      BN_free);
  if (number == nullptr) return "";
  // The form that certificate_maker.cc reads back.
  char* hex = BN_bn2hex(number.get());
  std::string text = hex == nullptr ? "" : hex;
  OPENSSL_free(hex);
  return text;
}

// As RoughDuration(), without seconds.
std::string RoughMinutes(absl::Duration duration) {
  return duration < absl::Minutes(2) ? "less than 2 min"
                                     : RoughDuration(duration);
}

}  // namespace

std::string CertificateFacts::Owner() const {
  return OneLine(names.uris.empty() ? subject : names.uris.front(), 200);
}

CertificateFacts FactsOf(X509* certificate) {
  CertificateFacts facts;
  ReadNames(certificate, facts);
  facts.subject = TextOf(X509_get_subject_name(certificate));
  facts.issuer = TextOf(X509_get_issuer_name(certificate));
  facts.serial = SerialOf(certificate);
  facts.not_before = ToTime(X509_get0_notBefore(certificate));
  facts.not_after = ToTime(X509_get0_notAfter(certificate));
  // Only 1: other results are old certificates without basic constraints.
  facts.is_authority = X509_check_ca(certificate) == 1;
  // Otherwise OpenSSL would report the errors at the next TLS call of this
  // thread.
  ERR_clear_error();
  return facts;
}

absl::StatusOr<std::vector<X509Ptr>> ReadCertificates(
    absl::string_view pem, absl::string_view source) {
  std::vector<X509Ptr> certificates;
  const BioPtr bio = ReadFrom(pem);
  while (true) {
    X509Ptr next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) break;
    certificates.push_back(std::move(next));
  }
  // OpenSSL has no other sign for the end of the text.
  const bool ended =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string error = OpenSslError();
  if (!certificates.empty() && ended) return certificates;
  return absl::InvalidArgumentError(
      certificates.empty() && ended
          ? absl::StrCat(source, " has no certificate in PEM format")
          : absl::StrCat(source, " has a damaged certificate: ", error));
}

std::string ValidityTrouble(const CertificateFacts& facts, absl::Time now) {
  if (now < facts.not_before) {
    return absl::StrCat("is not valid before ",
                        absl::FormatTime(facts.not_before, absl::UTCTimeZone()),
                        ", in ", RoughMinutes(facts.not_before - now),
                        "; compare the clocks");
  }
  if (now > facts.not_after) {
    return absl::StrCat("expired ", RoughMinutes(now - facts.not_after),
                        " ago");
  }
  if (facts.not_after - now < kExpirySoon) {
    return absl::StrCat("expires in ", RoughMinutes(facts.not_after - now));
  }
  return "";
}

std::string RoughDuration(absl::Duration duration) {
  constexpr absl::Duration kDay = absl::Hours(24);
  if (duration >= 2 * kDay) return absl::StrCat(duration / kDay, " days");
  if (duration >= absl::Hours(2)) {
    return absl::StrCat(duration / absl::Hours(1), " h");
  }
  if (duration >= absl::Minutes(2)) {
    return absl::StrCat(duration / absl::Minutes(1), " min");
  }
  return absl::StrCat(duration / absl::Seconds(1), " s");
}

}  // namespace lockstep
