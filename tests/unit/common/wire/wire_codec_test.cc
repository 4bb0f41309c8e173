#include "common/wire/wire_codec.h"

#include <cstdint>
#include <limits>
#include <string>

#include "common/wire/incarnation_bounds.h"
#include "common/wire/sender.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sender Worker3() { return {"job", {TaskType::kWorker, 3}, 17}; }

// Programs in other languages read it from the protos.
TEST(ProtocolVersionTest, ProtosHaveTheVersionOfTheCode) {
  EXPECT_EQ(static_cast<int>(v1::PROTOCOL_VERSION), kProtocolVersion);
}

TEST(WireCodecTest, SenderIsTheSameOnTheOtherSide) {
  const auto came = FromProto(ToProto(Worker3()));

  ASSERT_OK(came);
  EXPECT_EQ(came->job_id, "job");
  EXPECT_EQ(came->task.ToString(), Worker3().task.ToString());
  EXPECT_EQ(came->incarnation, 17U);
}

TEST(WireCodecTest, SenderThatNamesNoProcessIsRefused) {
  v1::Identity identity = ToProto(Worker3());
  identity.set_task_index(-1);
  EXPECT_THAT(FromProto(identity),
              StatusIs(absl::StatusCode::kInvalidArgument));

  identity = ToProto(Worker3());
  identity.set_incarnation(0);
  EXPECT_THAT(FromProto(identity), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("incarnation")));
  identity.set_incarnation(std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(FromProto(identity),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// A process that comes later needs a larger one still.
TEST(WireCodecTest, LargestIncarnationLeavesRoomForTheNext) {
  EXPECT_THAT(CheckIncarnation("x", kLargestIncarnation), IsOk());
  EXPECT_THAT(
      CheckIncarnation("the_field", kLargestIncarnation + 1),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the_field")));
}

TEST(WireCodecTest, VariableIsTheSameOnTheOtherSide) {
  const VariableSpec sent{
      "layer/w", {3, 4}, DType::kFloat64, {Initializer::Kind::kConstant, 2, 0}};

  const auto came = FromProto(ToProto(sent));

  ASSERT_OK(came);
  EXPECT_EQ(came->name, sent.name);
  EXPECT_EQ(came->shape, sent.shape);
  EXPECT_EQ(came->dtype, sent.dtype);
  EXPECT_EQ(came->initializer.kind, sent.initializer.kind);
}

TEST(WireCodecTest, VariableThatCannotBeIsRefused) {
  const VariableSpec good{
      "w", {3}, DType::kFloat32, {Initializer::Kind::kConstant, 1, 0}};
  v1::VariableDescription nameless = ToProto(good);
  nameless.clear_name();
  EXPECT_THAT(FromProto(nameless),
              StatusIs(absl::StatusCode::kInvalidArgument));
  v1::VariableDescription negative = ToProto(good);
  negative.set_shape(0, -3);
  EXPECT_THAT(FromProto(negative),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

v1::GetPlanResponse OnePartOf10(const Part& part) {
  v1::GetPlanResponse response;
  *response.add_variables() = ToProto(VariableSpec{
      "w", {10}, DType::kFloat32, {Initializer::Kind::kConstant, 1, 0}});
  *response.add_parts() = ToProto(part);
  return response;
}

TEST(WireCodecTest, PlanIsUsedOnlyIfItsPartsAreWhereItSays) {
  const auto plan = PlanFromProto(OnePartOf10({0, 0, 10, 1, 0}), 2);
  ASSERT_OK(plan);
  EXPECT_THAT(plan->parts, ElementsAre(Part{0, 0, 10, 1, 0}));

  EXPECT_THAT(PlanFromProto(OnePartOf10({0, 5, 6, 1, 0}), 2),
              StatusIs(absl::StatusCode::kInvalidArgument));  // beyond its end
  EXPECT_THAT(PlanFromProto(OnePartOf10({1, 0, 10, 1, 0}), 2),
              StatusIs(absl::StatusCode::kInvalidArgument));  // no variable 1
  EXPECT_THAT(PlanFromProto(OnePartOf10({0, 0, 10, 2, 0}), 2),
              StatusIs(absl::StatusCode::kInvalidArgument));  // no ps 2
}

TEST(WireCodecTest, MirrorsMaySumEachOthersParts) {
  v1::GetPlanResponse response = OnePartOf10({0, 0, 4, 1, 0});
  response.set_mirrored(true);
  *response.add_parts() = ToProto(Part{0, 4, 4, 0, 2});
  *response.add_parts() = ToProto(Part{0, 8, 2, 1, 1});
  EXPECT_OK(PlanFromProto(response, 2));

  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  response.mutable_parts(2)->set_index(2);  // twice
  EXPECT_THAT(PlanFromProto(response, 2), invalid);
  response.mutable_parts(2)->set_index(3);
  EXPECT_THAT(PlanFromProto(response, 2), invalid);
  response.mutable_parts(2)->set_index(-1);
  EXPECT_THAT(PlanFromProto(response, 2), invalid);
}

TEST(WireCodecTest, DurationsBeyondTheWiresRangeAreClamped) {
  EXPECT_EQ(FromProto(ToProto(absl::Milliseconds(-1500))),
            absl::Milliseconds(-1500));
  const absl::Duration longest = FromProto(ToProto(absl::InfiniteDuration()));
  EXPECT_GT(longest, absl::Hours(24 * 365 * 9000));
  EXPECT_LT(longest, absl::InfiniteDuration());
}

TEST(WireCodecTest, SettingsAreCheckedAndTheSameOnTheOtherSide) {
  RunSettings sent;
  sent.revision = 4;
  sent.replicas_to_aggregate = 2;
  sent.learning_rate_scale = 0.5;
  sent.paused = true;
  sent.workers = {0, 2};
  const auto came = FromProto(ToProto(sent));
  ASSERT_OK(came);
  EXPECT_EQ(*came, sent);

  sent.workers = {2, 0};
  EXPECT_THAT(FromProto(ToProto(sent)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  sent.workers = {RunSettings::kMaxWorkers};
  EXPECT_THAT(FromProto(ToProto(sent)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  sent.workers = {};
  sent.learning_rate_scale = -1;
  EXPECT_THAT(FromProto(ToProto(sent)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(WireCodecTest, CauseThatThisProgramDoesNotKnowIsThatOfAStop) {
  for (const LeaveCause cause :
       {LeaveCause::kDone, LeaveCause::kEndOfInput, LeaveCause::kCannotTakePart,
        LeaveCause::kNoRoom, LeaveCause::kStopped}) {
    EXPECT_EQ(FromProto(ToProto(cause)), cause);
  }
  EXPECT_EQ(FromProto(static_cast<v1::LeaveCause>(99)), LeaveCause::kStopped);
}

TEST(WireCodecTest, ProgressIsTheSameOnTheOtherSide) {
  Progress sent;
  sent.local_step = 5;
  sent.passes = 9;
  sent.accepted = 6;
  sent.stale = 3;
  sent.waiting = absl::Milliseconds(1250);
  sent.loss = 0.25;
  sent.activity = "pulls";
  sent.activity_kind = ActivityKind::kWaits;
  sent.micro_batches = 12;
  sent.micro_batches_time = absl::Milliseconds(70);
  sent.pushes = 3;
  sent.pushes_time = absl::Milliseconds(5);
  const Progress came = FromProto(ToProto(sent));
  EXPECT_EQ(came.local_step, 5);
  EXPECT_EQ(came.passes, 9);
  EXPECT_EQ(came.accepted, 6);
  EXPECT_EQ(came.stale, 3);
  EXPECT_EQ(came.waiting, absl::Milliseconds(1250));
  EXPECT_EQ(came.loss, 0.25);
  EXPECT_EQ(came.activity, "pulls");
  EXPECT_EQ(came.activity_kind, ActivityKind::kWaits);
  EXPECT_EQ(came.micro_batches, 12);
  EXPECT_EQ(came.micro_batches_time, absl::Milliseconds(70));
  EXPECT_EQ(came.pushes, 3);
  EXPECT_EQ(came.pushes_time, absl::Milliseconds(5));
}

// The chief subtracts and adds them.
TEST(WireCodecTest, CountsOfAHeartbeatAreBoundedBothWays) {
  v1::WorkerProgress sent;
  for (const int64_t count : {std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()}) {
    sent.set_local_step(count);
    sent.set_passes(count);
    sent.set_accepted(count);
    sent.set_stale(count);
    sent.set_duplicate(count);
    sent.set_examples(count);
    sent.set_computed(count);
    sent.set_micro_batches(std::numeric_limits<uint64_t>::max());
    sent.set_pushes(std::numeric_limits<uint64_t>::max());
    const Progress came = FromProto(sent);
    const int64_t want = count < 0 ? 0 : Progress::kMostCounted;
    EXPECT_EQ(came.local_step, want);
    EXPECT_EQ(came.passes, want);
    EXPECT_EQ(came.accepted, want);
    EXPECT_EQ(came.stale, want);
    EXPECT_EQ(came.duplicate, want);
    EXPECT_EQ(came.examples, want);
    EXPECT_EQ(came.computed, want);
    EXPECT_EQ(came.micro_batches, Progress::kMostCounted);
    EXPECT_EQ(came.pushes, Progress::kMostCounted);
  }
}

// The text has what a file or a flag has, such as a path in Latin-1.
TEST(WireCodecTest, ProgressIsReadWhateverBytesItsTextHas) {
  Progress sent;
  sent.local_step = 5;
  sent.activity = "reads M\xFCller.npy";
  sent.trouble = "no checkpoint in /data/M\xFCller";

  v1::WorkerProgress came;
  ASSERT_TRUE(came.ParseFromString(ToProto(sent).SerializeAsString()));

  EXPECT_EQ(FromProto(came).local_step, 5);
  EXPECT_EQ(FromProto(came).activity, "reads M?ller.npy");
  EXPECT_EQ(FromProto(came).trouble, "no checkpoint in /data/M?ller");
}

TEST(WireCodecTest, KindOfAnActivityIsTheSameOnTheOtherSide) {
  Progress sent;
  for (const ActivityKind kind :
       {ActivityKind::kOther, ActivityKind::kWaits, ActivityKind::kComputes}) {
    sent.activity_kind = kind;
    EXPECT_EQ(FromProto(ToProto(sent)).activity_kind, kind);
  }
  EXPECT_EQ(ToProto(sent).activity_kind(), v1::ACTIVITY_COMPUTES);
  v1::WorkerProgress newer;
  newer.set_activity_kind(static_cast<v1::ActivityKind>(99));
  EXPECT_EQ(FromProto(newer).activity_kind, ActivityKind::kOther);
}

}  // namespace
}  // namespace lockstep
