#include "common/rpc/security/certificate_name.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(CertificateNameTest, TasksRolesAndOperatorsKeepTheirNames) {
  const CertificateName names[] = {
      {"fashion", Role::kChief, 0},
      {"fashion", Role::kPs, 1},
      {"a-b_c.d", Role::kWorker, 999'999},
      {"fashion", Role::kWorker, std::nullopt},
      {"fashion", Role::kEvaluator, 0},
      {"fashion", Role::kReader, std::nullopt},
      {"fashion", Role::kSteerer, std::nullopt},
  };
  for (const CertificateName& name : names) {
    EXPECT_THAT(ParseCertificateName(name.ToUri()), IsOkAndHolds(name))
        << name.ToUri();
  }
}

TEST(CertificateNameTest, SpiffeIdMeansTheSame) {
  EXPECT_THAT(
      ParseCertificateName("spiffe://cluster.local/lockstep/fashion/ps/1"),
      IsOkAndHolds(CertificateName{"fashion", Role::kPs, 1}));
}

TEST(CertificateNameTest, OtherSpellingsAreRefused) {
  for (const char* uri : {"",
                          "lockstep://",
                          "lockstep://fashion",
                          "lockstep://fashion/ps",
                          "lockstep://fashion/ps/",
                          "lockstep://fashion/ps/01",
                          "lockstep://fashion/ps/+1",
                          "lockstep://fashion/ps/-1",
                          "lockstep://fashion/ps/ 1",
                          "lockstep://fashion/ps/1000000",
                          "lockstep://fashion/ps/99999999999999999999",
                          "lockstep://fashion/ps/1/",
                          "lockstep://fashion/ps/1?x",
                          "lockstep://fashion//1",
                          "lockstep:///ps/1",
                          "lockstep://../ps/1",
                          "lockstep://fa%73hion/ps/1",
                          "lockstep://fashion:1/ps/1",
                          "lockstep://user@fashion/ps/1",
                          "lockstep://fashion/PS/1",
                          "lockstep://fashion/master/0",
                          "lockstep://fashion/operator/*",
                          "lockstep://fashion/operator/0",
                          "lockstep://fashion/operator/admin",
                          "LOCKSTEP://fashion/ps/1",
                          "http://fashion/ps/1",
                          "spiffe://domain/fashion/ps/1",
                          "spiffe:///lockstep/fashion/ps/1",
                          "spiffe://domain/other/fashion/ps/1",
                          "spiffe://domain/lockstep/fashion/ps/1/x"}) {
    EXPECT_THAT(ParseCertificateName(uri),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << uri;
  }
  const std::string zero("lockstep://fashion/ps/1\0", 24);
  EXPECT_THAT(ParseCertificateName(zero),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const std::string inner("lockstep://fash\0ion/ps/1", 24);
  EXPECT_THAT(ParseCertificateName(inner),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CertificateNameTest, MessagesNameTheMistakeAndTheForm) {
  EXPECT_THAT(
      ParseCertificateName("lockstep://fashion/boss/0").status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               ::testing::AllOf(HasSubstr("no such role"),
                                HasSubstr("lockstep://JOB/ROLE/INDEX"))));
}

TEST(CertificateNameTest, NameOfATaskCoversThatTaskAlone) {
  const CertificateName name{"fashion", Role::kWorker, 1};
  EXPECT_TRUE(name.Covers({TaskType::kWorker, 1}));
  EXPECT_FALSE(name.Covers({TaskType::kWorker, 0}));
  EXPECT_FALSE(name.Covers({TaskType::kPs, 1}));
}

TEST(CertificateNameTest, NameOfARoleCoversItsTasksAlone) {
  const CertificateName name{"fashion", Role::kWorker, std::nullopt};
  EXPECT_TRUE(name.Covers({TaskType::kWorker, 0}));
  EXPECT_TRUE(name.Covers({TaskType::kWorker, 17}));
  EXPECT_FALSE(name.Covers({TaskType::kEvaluator, 0}));
}

TEST(CertificateNameTest, OperatorsCoverNoTask) {
  const CertificateName name{"fashion", Role::kSteerer, std::nullopt};
  for (TaskType type : {TaskType::kChief, TaskType::kWorker, TaskType::kPs,
                        TaskType::kEvaluator}) {
    EXPECT_FALSE(name.Covers({type, 0}));
  }
}

TEST(CertificateNameTest, JobsThatFitNoNameAreRefused) {
  EXPECT_THAT(CheckJobInName("fashion_mnist-2.b"), IsOk());
  for (const std::string& job :
       {std::string(), std::string("a/b"), std::string("a b"), std::string("."),
        std::string(129, 'a')}) {
    EXPECT_THAT(CheckJobInName(job),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << job;
  }
}

}  // namespace
}  // namespace lockstep
