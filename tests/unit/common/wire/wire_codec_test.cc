#include "common/wire/wire_codec.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/wire/incarnation_bounds.h"
#include "common/wire/sender.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
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
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("identity.task_index is -1")));
  identity = ToProto(Worker3());
  identity.set_task_type("king");
  EXPECT_THAT(FromProto(identity),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("king")));
  identity = ToProto(Worker3());
  identity.set_incarnation(0);
  EXPECT_THAT(FromProto(identity), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("incarnation is 0")));
  identity.set_incarnation(std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(FromProto(identity),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("so that a newer process")));
}

// A process that comes later needs a larger one still.
TEST(WireCodecTest, LargestIncarnationLeavesRoomForTheNext) {
  EXPECT_THAT(CheckIncarnation("x", kLargestIncarnation), IsOk());
  EXPECT_THAT(
      CheckIncarnation("the_field", kLargestIncarnation + 1),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the_field")));
}

TEST(WireCodecTest, VariableIsTheSameOnTheOtherSide) {
  using Kind = Initializer::Kind;
  for (const VariableSpec& sent :
       {VariableSpec{
            "layer/w", {3, 4}, DType::kFloat64, {Kind::kConstant, 2, 0}},
        VariableSpec{"b", {}, DType::kBFloat16, {Kind::kGiven, 0, 0}},
        VariableSpec{"mean",
                     {4},
                     DType::kFloat16,
                     {Kind::kConstant, 1, 0},
                     RowCut::kNone,
                     /*buffer=*/true},
        VariableSpec{"d",
                     {7, 2},
                     DType::kFloat32,
                     {Kind::kUniform, -1, 3},
                     RowCut::kDiv},
        VariableSpec{"m",
                     {7, 2},
                     DType::kFloat32,
                     {Kind::kNormal, 0.5, 2},
                     RowCut::kMod},
        VariableSpec{"k",
                     {7, 2},
                     DType::kFloat32,
                     {Kind::kTruncatedNormal, 0, 1},
                     RowCut::kKey}}) {
    const auto came = FromProto(ToProto(sent));
    ASSERT_OK(came);
    EXPECT_EQ(*came, sent) << sent.name;
  }
}
TEST(WireCodecTest, VariableThatCannotBeIsRefused) {
  const VariableSpec good{
      "w", {3}, DType::kFloat32, {Initializer::Kind::kConstant, 1, 0}};
  const auto refuses = [&](const char* why, auto change) {
    v1::VariableDescription wrong = ToProto(good);
    change(wrong);
    EXPECT_THAT(FromProto(wrong),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  using Proto = v1::VariableDescription;
  refuses("has no name", [](Proto& v) { v.clear_name(); });
  refuses("has a name of 9999 bytes",
          [](Proto& v) { v.set_name(std::string(9999, 'x')); });
  refuses("dimensions; at most", [](Proto& v) {
    for (int i = 0; i < 999; ++i) v.add_shape(1);
  });
  refuses("must be positive", [](Proto& v) { v.set_shape(0, -3); });
  refuses("at most 2^56", [](Proto& v) {
    v.set_shape(0, int64_t{1} << 40);
    v.add_shape(int64_t{1} << 40);
  });
  refuses("int7", [](Proto& v) { v.set_dtype("int7"); });
  refuses("initializer 99 does not exist", [](Proto& v) {
    v.set_initializer(static_cast<v1::Initializer>(99));
  });
  refuses("row_cut 9 of shape [3]",
          [](Proto& v) { v.set_row_cut(static_cast<v1::RowCut>(9)); });
  refuses("a table has rows", [](Proto& v) {
    v.clear_shape();
    v.set_row_cut(static_cast<v1::RowCut>(RowCut::kDiv));
  });
  refuses("is a table and a buffer", [](Proto& v) {
    v.set_row_cut(static_cast<v1::RowCut>(RowCut::kDiv));
    v.set_buffer(true);
  });
}

TEST(WireCodecTest, ExamplesAreCheckedAndTheSameOnTheOtherSide) {
  const ExampleShape sent{
      .height = 28, .width = 20, .channels = 3, .classes = 10, .tokens = 7};
  const auto came = FromProto(ToProto(sent));
  ASSERT_OK(came);
  EXPECT_EQ(came->height, 28);
  EXPECT_EQ(came->width, 20);
  EXPECT_EQ(came->channels, 3);
  EXPECT_EQ(came->classes, 10);
  EXPECT_EQ(came->tokens, 7);
  using Proto = v1::ExampleDescription;
  const auto refuses = [&](auto change) {
    Proto wrong = ToProto(sent);
    change(wrong);
    EXPECT_THAT(FromProto(wrong),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("sizes must be in [1, 262144]")))
        << wrong.ShortDebugString();
  };
  refuses([](Proto& e) { e.set_height(0); });
  refuses([](Proto& e) { e.set_width((1 << 18) + 1); });
  refuses([](Proto& e) { e.set_channels(-1); });
  refuses([](Proto& e) { e.set_classes(0); });
  refuses([](Proto& e) { e.set_tokens(-1); });
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

  for (const Part& wrong : {Part{0, 5, 6, 1, 0},      // beyond its end
                            Part{1, 0, 10, 1, 0},     // no variable 1
                            Part{-1, 0, 10, 1, 0},    // nor -1
                            Part{0, 0, 10, -1, 0},    // no ps -1
                            Part{0, 0, 10, 1, 1}}) {  // not the first of ps 1
    EXPECT_THAT(PlanFromProto(OnePartOf10(wrong), 2),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("plan: part 0 (")));
  }
  EXPECT_THAT(PlanFromProto(OnePartOf10({0, 0, 10, 2, 0}), 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a part on ps 2; this process's")));
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

  google::protobuf::Duration from_peer;
  from_peer.set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(FromProto(from_peer), longest);
  from_peer.set_seconds(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(FromProto(from_peer), -longest);
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

  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("settings: "));
  for (const std::vector<int>& workers :
       {std::vector<int>{2, 0}, std::vector<int>{1, 1}, std::vector<int>{-1},
        std::vector<int>{RunSettings::kMaxWorkers}}) {
    RunSettings wrong = sent;
    wrong.workers = workers;
    EXPECT_THAT(FromProto(ToProto(wrong)), refused) << workers.front();
  }
  for (const double scale : {-1.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    RunSettings wrong = sent;
    wrong.learning_rate_scale = scale;
    EXPECT_THAT(FromProto(ToProto(wrong)), refused) << scale;
  }
  RunSettings negative = sent;
  negative.revision = -1;
  EXPECT_THAT(FromProto(ToProto(negative)), refused);
  negative = sent;
  negative.replicas_to_aggregate = -1;
  EXPECT_THAT(FromProto(ToProto(negative)), refused);
  // A job whose settings were never changed sends none.
  EXPECT_THAT(FromProto(v1::RunSettings()), IsOkAndHolds(RunSettings()));
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
  sent.duplicate = 2;
  sent.examples = 900;
  sent.computed = 8;
  sent.waiting = absl::Milliseconds(1250);
  sent.activity_age = absl::Milliseconds(300);
  sent.trouble = "no data";
  sent.cannot_score = true;
  sent.figures = {{"bleu", 0.5}};
  sent.pass_times = {{absl::Milliseconds(4), true}, {absl::Milliseconds(6)}};
  sent.pass_age = absl::Milliseconds(9);
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
  EXPECT_EQ(came.duplicate, 2);
  EXPECT_EQ(came.examples, 900);
  EXPECT_EQ(came.computed, 8);
  EXPECT_EQ(came.activity_age, absl::Milliseconds(300));
  EXPECT_EQ(came.trouble, "no data");
  EXPECT_TRUE(came.cannot_score);
  ASSERT_EQ(came.figures.size(), 1u);
  EXPECT_EQ(came.figures[0].name, "bleu");
  EXPECT_EQ(came.figures[0].value, 0.5);
  ASSERT_EQ(came.pass_times.size(), 2u);
  EXPECT_EQ(came.pass_times[0].computed, absl::Milliseconds(4));
  EXPECT_TRUE(came.pass_times[0].dropped);
  EXPECT_EQ(came.pass_times[1].computed, absl::Milliseconds(6));
  EXPECT_FALSE(came.pass_times[1].dropped);
  EXPECT_EQ(came.pass_age, absl::Milliseconds(9));
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
  for (size_t i = 0; i < Progress::kPassTimes + 5; ++i) {
    sent.add_pass_times(std::numeric_limits<uint64_t>::max());
  }
  const Progress came = FromProto(sent);
  EXPECT_THAT(came.pass_times, ::testing::SizeIs(Progress::kPassTimes));
  EXPECT_EQ(came.pass_times.back().computed, absl::Hours(24 * 365));
}

// Status and page show them, and metrics add them up.
TEST(WireCodecTest, TimesOfAHeartbeatAreBoundedBothWays) {
  v1::WorkerProgress sent;
  for (const int64_t seconds :
       {std::numeric_limits<int64_t>::min(), int64_t{-1},
        std::numeric_limits<int64_t>::max()}) {
    sent.mutable_waiting()->set_seconds(seconds);
    sent.mutable_activity_age()->set_seconds(seconds);
    const Progress came = FromProto(sent);
    const absl::Duration want =
        seconds < 0 ? absl::ZeroDuration() : absl::Hours(24 * 365);
    EXPECT_EQ(came.waiting, want);
    EXPECT_EQ(came.activity_age, want);
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
