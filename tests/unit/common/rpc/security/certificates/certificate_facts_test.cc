#include "common/rpc/security/certificates/certificate_facts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TestAuthority;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::Duration kDay = absl::Hours(24);

TEST(CertificateFactsTest, ReadsNamesAndTimes) {
  const Validity valid{absl::FromUnixSeconds(1'700'000'000),
                       absl::FromUnixSeconds(1'750'000'000)};
  const CertifiedKey pair =
      TestAuthority("the authority").IssueAll({"worker/1", "chief/0"}, valid);
  const auto certificates = ReadCertificates(pair.certificate, "tls.crt");
  ASSERT_OK(certificates);
  const CertificateFacts facts = FactsOf(certificates->at(0).get());
  EXPECT_THAT(facts.names.uris, ElementsAre("lockstep://fashion/worker/1",
                                            "lockstep://fashion/chief/0"));
  EXPECT_THAT(facts.names.dns, ElementsAre("localhost"));
  EXPECT_THAT(facts.addresses, ElementsAre("127.0.0.1"));
  EXPECT_EQ(facts.not_before, valid.from);
  EXPECT_EQ(facts.not_after, valid.until);
  EXPECT_FALSE(facts.is_authority);
  EXPECT_EQ(facts.Owner(), "lockstep://fashion/worker/1");
  EXPECT_THAT(facts.issuer, HasSubstr("the authority"));
  EXPECT_EQ(facts.serial.size(), 32u);
}

TEST(CertificateFactsTest, KeysBetweenCertificatesArePassedOver) {
  const CertifiedKey pair = TestAuthority().Issue("ps/0");
  const auto certificates = ReadCertificates(
      pair.key + pair.certificate + pair.key + pair.certificate, "x");
  ASSERT_OK(certificates);
  EXPECT_EQ(certificates->size(), 2u);
}

TEST(CertificateFactsTest, TextWithoutCertificateIsRefused) {
  EXPECT_THAT(ReadCertificates("", "tls.crt"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tls.crt has no certificate")));
  std::string damaged = TestAuthority().Issue("ps/0").certificate;
  damaged[60] = damaged[60] == 'A' ? 'B' : 'A';
  damaged.erase(100, 30);
  EXPECT_THAT(ReadCertificates(damaged, "tls.crt"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tls.crt has a damaged certificate")));
}

TEST(CertificateFactsTest, OwnersNameCannotControlATerminal) {
  CertificateFacts facts;
  facts.names.uris = {"lockstep://x\n\x1b[2J"};
  EXPECT_EQ(facts.Owner(), "lockstep://x\\n\\x1b[2J");
}

TEST(CertificateFactsTest, ExpiryIsAnnouncedFourteenDaysAhead) {
  const absl::Time now = absl::FromUnixSeconds(1'750'000'000);
  CertificateFacts facts;
  facts.not_before = now - kDay;
  facts.not_after = now + 14 * kDay;
  EXPECT_EQ(ValidityTrouble(facts, now), "");
  facts.not_after = now + 14 * kDay - absl::Seconds(1);
  EXPECT_EQ(ValidityTrouble(facts, now), "expires in 13 days");
  facts.not_after = now - absl::Minutes(3);
  EXPECT_EQ(ValidityTrouble(facts, now), "expired 3 min ago");
  facts.not_after = now + 90 * kDay;
  facts.not_before = now + absl::Hours(5);
  EXPECT_THAT(ValidityTrouble(facts, now), StartsWith("is not valid before"));
  EXPECT_THAT(ValidityTrouble(facts, now), HasSubstr("in 5 h; compare"));
}

TEST(CertificateFactsTest, TroubleAroundTheEndIsNotAnotherOneEachSecond) {
  const absl::Time end = absl::FromUnixSeconds(1'750'000'000);
  CertificateFacts facts;
  facts.not_before = end - kDay;
  facts.not_after = end;
  for (int seconds = 1; seconds < 120; ++seconds) {
    EXPECT_EQ(ValidityTrouble(facts, end - absl::Seconds(seconds)),
              "expires in less than 2 min");
    EXPECT_EQ(ValidityTrouble(facts, end + absl::Seconds(seconds)),
              "expired less than 2 min ago");
  }
}

}  // namespace
}  // namespace lockstep
