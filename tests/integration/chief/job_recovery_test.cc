#include "chief/job_recovery.h"

#include "absl/time/clock.h"
#include "common/wire/sender.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kIncarnation = 1;

// Has no actions to carry out.
class NoCarrier final : public ActionCarrier {
 public:
  void Carry(const JobActions& actions) override {
    EXPECT_THAT(actions, IsEmpty());
  }
};

class JobRecoveryTest : public ::testing::Test {
 protected:
  absl::StatusOr<RoundOutcome> Run(const std::vector<VariableSpec>& model) {
    EXPECT_OK(status_.Describe(model));
    return recovery_.Run(Recover{.request = {.servers = {0}}});
  }

  JobConfig job_;
  MembershipTable members_{{{TaskType::kPs, 0}, {TaskType::kWorker, 0}},
                           job_.lease};
  StatusTable status_;
  GivenValues values_{""};
  JobCheckpoints checkpoints_{job_.checkpoint, [](const std::string&) {}};
  JobDriver driver_{job_, {.num_servers = 1}, members_, absl::Now()};
  // Nothing listens at port 1.
  ShardGroupClient servers_{{"127.0.0.1:1"},
                            {"job", {TaskType::kChief, 0}, kIncarnation}};
  NoCarrier carrier_;
  JobRecovery recovery_{{job_, Clock::Real(), servers_, members_, status_,
                         values_, checkpoints_, driver_},
                        carrier_};
};

TEST_F(JobRecoveryTest, ServerThatIsAwayFailsTheRoundByItsName) {
  EXPECT_THAT(Run({{.name = "w", .shape = {2}}}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ps 0")));
  EXPECT_THAT(recovery_.map().plan.parts, IsEmpty());
}

TEST_F(JobRecoveryTest, ModelThatDoesNotFitIsRefusedBeforeAServerIsAsked) {
  job_.gradient_wire_type = GradientType::kBFloat16;
  EXPECT_THAT(Run({{.name = "w", .shape = {2}, .dtype = DType::kFloat16}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("w")));
}

}  // namespace
}  // namespace lockstep::chief
