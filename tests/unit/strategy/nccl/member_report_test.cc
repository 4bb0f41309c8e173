#include "strategy/nccl/member_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

MemberReport Of(const std::string& host, int gpu, int gpus) {
  MemberReport report;
  report.host = host;
  report.gpu = gpu;
  report.nccl = 22809;
  for (int i = 0; i < gpus; ++i)
    report.gpus.push_back(std::string(1, 'p') + std::to_string(i));
  return report;
}

TEST(MemberReportTest, AReportComesAsItWent) {
  MemberReport report = Of("a", 3, 2);
  report.problem = "one\ntwo \xc3\xa4";
  const auto read = ReportOf(ReportLeaf(report));
  ASSERT_OK(read);
  EXPECT_EQ(read->host, "a");
  EXPECT_EQ(read->problem, "one two \xc3\xa4") << "one line";
  EXPECT_EQ(read->gpu, 3);
  EXPECT_EQ(read->nccl, 22809);
  EXPECT_THAT(read->gpus, ElementsAre("p0", "p1"));
  EXPECT_THAT(ReportOf(ReportLeaf(Of("b", -1, 0)))->gpus, IsEmpty());
}

TEST(MemberReportTest, OtherLeavesAreNoReports) {
  EXPECT_THAT(ReportOf(Value::Scalar(1)), StatusIs(kInvalid));
  EXPECT_THAT(ReportOf(Slices()), StatusIs(kInvalid));
  EXPECT_THAT(ReportOf(TextLeaf("a\n\nx\n1\n")), StatusIs(kInvalid));
}

TEST(MemberReportTest, MembersTakeTheGpusOfTheirHostInOrder) {
  EXPECT_THAT(AssignGpus({Of("a", -1, 2), Of("b", -1, 2), Of("a", -1, 2),
                          Of("b", -1, 2)}),
              IsOkAndHolds(ElementsAre(0, 0, 1, 1)));
  EXPECT_THAT(AssignGpus({Of("a", 1, 2), Of("a", 0, 2)}),
              IsOkAndHolds(ElementsAre(1, 0)));
}

TEST(MemberReportTest, AMemberWithAProblemIsNamed) {
  MemberReport broken = Of("b", -1, 1);
  broken.problem = "it has no GPU; give the host a GPU and its driver";
  EXPECT_THAT(AssignGpus({Of("a", -1, 1), broken}),
              StatusIs(kRefused,
                       AllOf(HasSubstr("rank 1 (host b): it has no GPU; give"),
                             HasSubstr("or use communication DIRECT"))));
}

TEST(MemberReportTest, VersionsMustBeEqual) {
  MemberReport old = Of("b", -1, 1);
  old.nccl = 21805;
  EXPECT_THAT(AssignGpus({Of("a", -1, 1), old}),
              StatusIs(kRefused, AllOf(HasSubstr("rank 0 (host a) has version "
                                                 "22809"),
                                       HasSubstr("rank 1 (host b) has 21805"),
                                       HasSubstr("install the same"))));
}

TEST(MemberReportTest, AGpuThatIsNotThereIsNamed) {
  EXPECT_THAT(AssignGpus({Of("a", -1, 1), Of("a", -1, 1)}),
              StatusIs(kRefused,
                       AllOf(HasSubstr("rank 1 (host a) has no GPU 1: the host "
                                       "has 1 GPUs"),
                             HasSubstr("at most one member for each GPU"))));
  for (const int gpu : {-2, 2}) {
    EXPECT_THAT(AssignGpus({Of("a", gpu, 2)}),
                StatusIs(kRefused, HasSubstr("WorkersOptions::gpu is ")));
  }
}

TEST(MemberReportTest, OneGpuIsForOneMember) {
  EXPECT_THAT(
      AssignGpus({Of("a", 1, 2), Of("b", 1, 2), Of("b", 1, 2)}),
      StatusIs(kInvalid, AllOf(HasSubstr("rank 1 and rank 2 have the same GPU, "
                                         "p1 of host b"),
                               HasSubstr("or use communication DIRECT"))));
}

}  // namespace
}  // namespace lockstep::strategy
