#include "common/rpc/security/caller.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

Caller Of(const NamesInCertificate& names) {
  return {names,
          "fashion",
          {{"worker.mesh", {"fashion", Role::kWorker, std::nullopt}},
           {"other.mesh", {"elsewhere", Role::kWorker, std::nullopt}}}};
}

TEST(CallerTest, WorkerSpeaksForItselfAlone) {
  const Caller caller = Of({{"lockstep://fashion/worker/1"}, {}});
  EXPECT_EQ(caller.roles(), Bit(Role::kWorker));
  EXPECT_THAT(caller.CheckSpeaksFor({TaskType::kWorker, 1}), IsOk());
  EXPECT_THAT(caller.CheckSpeaksFor({TaskType::kWorker, 0}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("from worker 0"),
                             HasSubstr("worker 1 of job fashion"))));
  EXPECT_THAT(caller.CheckSpeaksFor({TaskType::kChief, 0}),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST(CallerTest, CertificateOfTwoTasksSpeaksForBoth) {
  const Caller caller =
      Of({{"lockstep://fashion/worker/0", "lockstep://fashion/chief/0"}, {}});
  EXPECT_EQ(caller.roles(), Bit(Role::kWorker) | Bit(Role::kChief));
  EXPECT_THAT(caller.CheckSpeaksFor({TaskType::kWorker, 0}), IsOk());
  EXPECT_THAT(caller.CheckSpeaksFor({TaskType::kChief, 0}), IsOk());
}

TEST(CallerTest, CertificateOfAnotherJobGivesNoRole) {
  const Caller caller = Of({{"lockstep://other/worker/1"}, {}});
  EXPECT_TRUE(caller.is_checked());
  EXPECT_EQ(caller.roles(), 0u);
  EXPECT_FALSE(caller.HasOneOf(kEveryRole));
  EXPECT_THAT(caller.CheckSpeaksFor({TaskType::kWorker, 1}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("lockstep://other/worker/1")));
}

TEST(CallerTest, CertificateOfTwoJobsGivesNoRole) {
  EXPECT_EQ(
      Of({{"lockstep://fashion/worker/1", "lockstep://other/worker/1"}, {}})
          .roles(),
      0u);
}

TEST(CallerTest, CertificateWithoutANameGivesNoRole) {
  EXPECT_EQ(Of({}).roles(), 0u);
  EXPECT_EQ(Of({{"https://example.com"}, {"example.com"}}).roles(), 0u);
}

TEST(CallerTest, UnknownNamesBesideAKnownOneDoNoHarm) {
  EXPECT_EQ(Of({{"lockstep://fashion/ps/1", "https://example.com"},
                {"ps-1.example.com"}})
                .roles(),
            Bit(Role::kPs));
}

TEST(CallerTest, MappedNamesHaveTheirRoles) {
  const Caller caller = Of({{}, {"worker.mesh"}});
  EXPECT_THAT(caller.CheckSpeaksFor({TaskType::kWorker, 7}), IsOk());
  EXPECT_FALSE(caller.HasOneOf(Bit(Role::kChief)));
}

TEST(CallerTest, DnsNameThatLooksLikeAUriIsNone) {
  EXPECT_EQ(Of({{}, {"lockstep://fashion/ps/1"}}).roles(), 0u);
}

TEST(CallerTest, ConnectionWithoutCertificatesIsNotChecked) {
  const Caller caller;
  EXPECT_FALSE(caller.is_checked());
  EXPECT_THAT(caller.CheckSpeaksFor({TaskType::kChief, 0}), IsOk());
  EXPECT_TRUE(caller.HasOneOf(Bit(Role::kSteerer)));
}

}  // namespace
}  // namespace lockstep
