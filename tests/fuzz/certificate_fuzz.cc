// Certificates of strangers are read before they are trusted: none may crash,
// and none that is not signed by the authority may be accepted.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/rpc/security/certificates/certificate_facts.h"
#include "common/rpc/security/certificates/certificate_maker.h"
#include "common/rpc/security/certificates/tls_files.h"
#include "common/rpc/security/certificates/trusted_authorities.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

const lockstep::TrustedAuthorities& Trusted() {
  static const auto* trusted = [] {
    const lockstep::Validity valid{absl::Now() - absl::Hours(1),
                                   absl::Now() + absl::Hours(24)};
    const auto authority = lockstep::MakeAuthority("fuzz", valid);
    Require(authority.ok());
    auto made = lockstep::TrustedAuthorities::Make(authority->certificate, "");
    Require(made.ok());
    return new auto(*std::move(made));
  }();
  return **trusted;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto certificates = lockstep::ReadCertificates(text, "peer");
  if (certificates.ok()) {
    for (const lockstep::X509Ptr& certificate : *certificates) {
      const auto facts = lockstep::FactsOf(certificate.get());
      Require(facts.Owner().size() < 1000);
      lockstep::ValidityTrouble(facts, absl::Now());
    }
  } else {
    Require(certificates.status().message().size() < 2000);
  }
  for (const auto side : {lockstep::TrustedAuthorities::Side::kServer,
                          lockstep::TrustedAuthorities::Side::kClient}) {
    Require(!Trusted().Check(text, side, absl::Now()).ok());
  }
  const std::string copy(text);
  Require(
      !lockstep::CheckTlsFiles({copy, copy, copy, copy}, "", absl::Now()).ok());
  return 0;
}
