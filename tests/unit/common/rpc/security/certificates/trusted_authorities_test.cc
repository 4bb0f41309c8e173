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
using ::testing::AllOf;
using ::testing::HasSubstr;
using Side = TrustedAuthorities::Side;

class TrustedAuthoritiesTest : public ::testing::Test {
 protected:
  absl::Status Check(const std::string& chain, Side side = Side::kClient,
                     const std::string& revoked = "") const {
    return TrustedAuthorities::Make(bundle_, revoked)
        .value()
        ->Check(chain, side, now_);
  }

  const TestAuthority authority_;
  std::string bundle_ = authority_.certificate();
  const absl::Time now_ = absl::Now();
};

TEST_F(TrustedAuthoritiesTest, CertificateOfTheAuthorityFitsBothSides) {
  const std::string chain = authority_.Issue("ps/0").certificate;
  EXPECT_THAT(Check(chain, Side::kClient), IsOk());
  EXPECT_THAT(Check(chain, Side::kServer), IsOk());
}

TEST_F(TrustedAuthoritiesTest, OtherAuthorityIsNamedWithTheOwner) {
  EXPECT_THAT(
      Check(TestAuthority("stranger").Issue("ps/0").certificate),
      StatusIs(absl::StatusCode::kUnauthenticated,
               AllOf(HasSubstr("lockstep://fashion/ps/0"),
                     HasSubstr("not signed by an authority of ca.crt"),
                     HasSubstr("test authority"), HasSubstr("stranger"))));
}

TEST_F(TrustedAuthoritiesTest, OtherAuthorityOfTheSameNameIsNotTrusted) {
  EXPECT_THAT(Check(TestAuthority().Issue("ps/0").certificate),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST_F(TrustedAuthoritiesTest, AuthorityThatAPeerBringsIsNotTrusted) {
  const TestAuthority stranger("stranger");
  EXPECT_THAT(
      Check(stranger.Issue("ps/0").certificate + stranger.certificate()),
      StatusIs(absl::StatusCode::kUnauthenticated,
               HasSubstr("not signed by an authority of ca.crt")));
}

TEST_F(TrustedAuthoritiesTest, SelfSignedCertificateIsNotTrusted) {
  const auto self = MakeAuthority("self", TestAuthority::Valid());
  ASSERT_OK(self);
  EXPECT_THAT(Check(self->certificate),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST_F(TrustedAuthoritiesTest, ExpiryIsToldWithItsTime) {
  const Validity past{now_ - absl::Hours(24), now_ - absl::Minutes(3)};
  EXPECT_THAT(Check(authority_.Issue("worker/1", past).certificate),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("the certificate of lockstep://fashion/"
                                 "worker/1 expired 3 min ago")));
}

TEST_F(TrustedAuthoritiesTest, CertificateOfTheFutureSpeaksOfClocks) {
  const Validity future{now_ + absl::Hours(3), now_ + absl::Hours(24)};
  EXPECT_THAT(Check(authority_.Issue("worker/1", future).certificate),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("is not valid before"),
                             HasSubstr("compare the clocks"))));
}

TEST_F(TrustedAuthoritiesTest, RevokedCertificateIsRefusedAndOthersAreNot) {
  const CertifiedKey bad = authority_.Issue("worker/1");
  const CertifiedKey good = authority_.Issue("worker/1");
  const std::string serial =
      FactsOf(ReadCertificates(bad.certificate, "x")->at(0).get()).serial;
  const std::string list = authority_.Revoke({serial});
  EXPECT_THAT(Check(bad.certificate, Side::kClient, list),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("worker/1 is revoked")));
  EXPECT_THAT(Check(good.certificate, Side::kClient, list), IsOk());
  EXPECT_THAT(Check(bad.certificate, Side::kClient), IsOk());
}

TEST_F(TrustedAuthoritiesTest, OldListStillRevokes) {
  const CertifiedKey bad = authority_.Issue("worker/1");
  const CertifiedKey good = authority_.Issue("worker/1");
  const std::string serial =
      FactsOf(ReadCertificates(bad.certificate, "x")->at(0).get()).serial;
  const std::string list = authority_.Revoke(
      {serial}, {now_ - absl::Hours(48), now_ - absl::Hours(24)});
  EXPECT_THAT(Check(bad.certificate, Side::kClient, list),
              StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(Check(good.certificate, Side::kClient, list), IsOk());
}

TEST_F(TrustedAuthoritiesTest, BundleTrustsEachOfItsAuthorities) {
  const TestAuthority next("next");
  const CertifiedKey bad = authority_.Issue("worker/1");
  const std::string serial =
      FactsOf(ReadCertificates(bad.certificate, "x")->at(0).get()).serial;
  const std::string list = authority_.Revoke({serial});
  bundle_ += next.certificate();
  EXPECT_THAT(Check(authority_.Issue("ps/0").certificate), IsOk());
  EXPECT_THAT(Check(next.Issue("ps/0").certificate), IsOk());
  // The next authority has no list yet.
  EXPECT_THAT(Check(next.Issue("ps/0").certificate, Side::kClient, list),
              IsOk());
  EXPECT_THAT(Check(bad.certificate, Side::kClient, list),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST_F(TrustedAuthoritiesTest, CertificateForServersAloneIsNoClients) {
  CertificateRequest request;
  request.common_name = "ps 0";
  request.uris = {"lockstep://fashion/ps/0"};
  request.for_clients = false;
  const auto pair =
      MakeCertificate(authority_.pair(), request, TestAuthority::Valid());
  ASSERT_OK(pair);
  EXPECT_THAT(Check(pair->certificate, Side::kServer), IsOk());
  EXPECT_THAT(Check(pair->certificate, Side::kClient),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("not made for this side")));
}

TEST_F(TrustedAuthoritiesTest, BundleWithAnotherCertificateIsRefused) {
  EXPECT_THAT(
      TrustedAuthorities::Make(authority_.Issue("ps/0").certificate, ""),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("ca.crt has the certificate of lockstep://fashion/"
                         "ps/0, which is no authority")));
}

TEST_F(TrustedAuthoritiesTest, ListOfAnotherAuthorityIsRefused) {
  const std::string list = TestAuthority().Revoke({});
  EXPECT_THAT(TrustedAuthorities::Make(bundle_, list),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no authority of ca.crt has signed")));
  EXPECT_THAT(TrustedAuthorities::Make(bundle_, "nonsense"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(TrustedAuthoritiesTest, DamagedListAfterAGoodOneIsRefused) {
  const std::string list = authority_.Revoke({});
  EXPECT_THAT(TrustedAuthorities::Make(bundle_, list + list), IsOk());

  // The writer of the file was cut off.
  const std::string half = list.substr(0, list.size() / 2);
  for (const std::string& revoked : {list + half, half}) {
    EXPECT_THAT(TrustedAuthorities::Make(bundle_, revoked),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("crl.pem has a damaged list")));
  }
}

}  // namespace
}  // namespace lockstep
