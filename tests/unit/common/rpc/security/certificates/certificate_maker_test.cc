#include "common/rpc/security/certificates/certificate_maker.h"

#include "common/rpc/security/certificates/trusted_authorities.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TestAuthority;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CertificateMakerTest, KeysAndSerialsAreNew) {
  const TestAuthority authority;
  const CertifiedKey one = authority.Issue("ps/0");
  const CertifiedKey other = authority.Issue("ps/0");
  EXPECT_NE(one.key, other.key);
  const auto facts = [](const CertifiedKey& pair) {
    return FactsOf(ReadCertificates(pair.certificate, "x")->at(0).get());
  };
  EXPECT_NE(facts(one).serial, facts(other).serial);
}

TEST(CertificateMakerTest, NoCertificateOutlivesItsAuthority) {
  const absl::Time now =
      absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()));
  const absl::Duration day = absl::Hours(24);
  const auto authority = MakeAuthority("short", {now - day, now + 10 * day});
  ASSERT_OK(authority);
  CertificateRequest request;
  request.common_name = "worker/1";
  const auto end = [&](absl::Duration wanted) {
    const auto made =
        MakeCertificate(*authority, request, {now - day, now + wanted});
    return FactsOf(ReadCertificates(made->certificate, "x")->at(0).get())
        .not_after;
  };
  EXPECT_EQ(end(365 * day), now + 10 * day);
  EXPECT_EQ(end(9 * day), now + 9 * day);
}

TEST(CertificateMakerTest, KeyOfAnotherAuthorityIsRefused) {
  const CertifiedKey mixed{TestAuthority().pair().certificate,
                           TestAuthority().pair().key};
  EXPECT_THAT(
      MakeCertificate(mixed, {}, TestAuthority::Valid()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not fit")));
}

TEST(CertificateMakerTest, OwnersCannotSignFurtherCertificates) {
  const TestAuthority authority;
  const CertifiedKey worker = authority.Issue("worker/1");
  CertificateRequest request;
  request.common_name = "forged";
  request.uris = {"lockstep://fashion/chief/0"};
  const auto forged = MakeCertificate(worker, request, TestAuthority::Valid());
  ASSERT_OK(forged);
  const auto trusted = TrustedAuthorities::Make(authority.certificate(), "");
  ASSERT_OK(trusted);
  EXPECT_THAT((*trusted)->Check(forged->certificate + worker.certificate,
                                TrustedAuthorities::Side::kClient, absl::Now()),
              Not(IsOk()));
}

TEST(CertificateMakerTest, HostWithACommaIsOneName) {
  CertificateRequest request;
  request.common_name = std::string(100, 'x');
  request.hosts = {"a,URI:lockstep://fashion/chief/0", "::1"};
  const auto made =
      MakeCertificate(TestAuthority().pair(), request, TestAuthority::Valid());
  ASSERT_OK(made);
  const CertificateFacts facts =
      FactsOf(ReadCertificates(made->certificate, "x")->at(0).get());
  EXPECT_TRUE(facts.names.uris.empty());
  EXPECT_EQ(facts.names.dns.size(), 1u);
  EXPECT_EQ(facts.addresses, std::vector<std::string>{"::1"});
}

}  // namespace
}  // namespace lockstep
