// Checkpoints that do not fit the job.

#include <string>
#include <tuple>
#include <vector>

#include "chief/checkpoint/checkpoint_transfer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/chief/checkpoint/checkpoint_transfer_fixture.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using CheckpointRefusalsTest = CheckpointTransferFixture;

TEST_F(CheckpointRefusalsTest, MissingVariableIsRefusedBeforeAnyWrite) {
  const CheckpointReader checkpoint = Sample();
  variables_.push_back({"layer2/w", {2}, DType::kFloat32, {}});
  Cluster cluster = MakeCluster(2);

  EXPECT_THAT(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("step 7"), HasSubstr("\"layer2/w\""))));

  EXPECT_EQ(cluster.writes(), 0);
}

TEST_F(CheckpointRefusalsTest, OtherShapeIsRefusedNamingBoth) {
  const CheckpointReader checkpoint = Sample();
  variables_[0].shape = {2, 4};
  Cluster cluster = MakeCluster(2);

  EXPECT_THAT(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"layer1/w\""), HasSubstr("[4,2]"),
                             HasSubstr("[2,4]"))));

  EXPECT_EQ(cluster.writes(), 0);
}

TEST_F(CheckpointRefusalsTest, OtherElementTypeIsRefusedNamingBoth) {
  const CheckpointReader checkpoint = Sample();
  variables_[2].dtype = DType::kFloat32;
  Cluster cluster = MakeCluster(2);

  EXPECT_THAT(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"scale\""), HasSubstr("F64"),
                             HasSubstr("F32"))));

  EXPECT_EQ(cluster.writes(), 0);
}

TEST_F(CheckpointRefusalsTest, OtherOptimizerIsRefusedBeforeAnyWrite) {
  const CheckpointReader checkpoint = Sample();
  slots_ = {"Momentum"};
  scalars_.clear();
  Cluster cluster = MakeCluster(2);

  EXPECT_THAT(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("/Momentum\"")));

  EXPECT_EQ(cluster.writes(), 0);
}

TEST_F(CheckpointRefusalsTest, MeanOfCenteredRmsPropIsNoMomentum) {
  const std::vector<std::string> plain = {"RMSProp", "RMSProp_1"};
  const std::vector<std::string> centered = {"RMSProp", "RMSProp_1",
                                             "RMSProp_2"};
  for (const auto& [from, to, message] :
       {std::tuple(centered, plain, "optimizer.centered is false"),
        std::tuple(plain, centered, "has no \"layer1/w/RMSProp_2\"")}) {
    slots_ = from;
    const auto step = static_cast<int64_t>(from.size());
    ASSERT_OK(Save(MakeCluster(2), step));
    slots_ = to;
    Cluster cluster = MakeCluster(2);

    EXPECT_THAT(
        RestoreCheckpoint(*store_.Open(step), cluster.map, cluster.Access()),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(message)));

    EXPECT_EQ(cluster.writes(), 0);
  }
}

}  // namespace
}  // namespace lockstep::chief
