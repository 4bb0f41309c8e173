#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/shard_control_service.h"
#include "tests/integration/server/rpc/shard_control_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Stub = v1::ShardControlService::Stub;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

using ShardControlShardTest = ShardControlFixture;

TEST_F(ShardControlShardTest, SameDescriptionAgainChangesNothing) {
  shard_.Create();
  ASSERT_OK(Call(shard_.control(), &Stub::WriteParts, shard_.WriteRequest()));

  auto again =
      Call(shard_.control(), &Stub::CreateShard, shard_.CreateRequest());

  ASSERT_OK(again);
  // Gradient descent keeps nothing beside a variable.
  EXPECT_THAT(again->variables(0).names(), IsEmpty());
  ASSERT_OK(Activate(0));
  EXPECT_THAT(shard_.Values(), ElementsAre(5, 5, 5, 5, 5, 5, 5, 5, 2, 2));
}

TEST_F(ShardControlShardTest, OtherPartsOfTheSameShardAreRefused) {
  shard_.Create();
  v1::CreateShardRequest request = shard_.CreateRequest();
  request.mutable_parts()->RemoveLast();

  EXPECT_THAT(Call(shard_.control(), &Stub::CreateShard, request),
              StatusIs(kPrecondition));
}

struct BadShard {
  std::string name;
  std::function<void(v1::CreateShardRequest&)> spoil;
};

class BadShardTest : public ShardControlFixture,
                     public ::testing::WithParamInterface<BadShard> {};

TEST_P(BadShardTest, IsRefusedAndShutsOutNoChief) {
  shard_.host().SetJobId(kJobId);
  ASSERT_THAT(TakeEpoch(), IsOkAndHolds(1));
  for (const uint64_t epoch :
       {uint64_t{1}, uint64_t{2}, uint64_t{1} << 40, ~uint64_t{0}}) {
    v1::CreateShardRequest request = shard_.CreateRequest();
    request.mutable_chief()->set_epoch(epoch);
    GetParam().spoil(request);

    EXPECT_THAT(Call(shard_.control(), &Stub::CreateShard, request),
                StatusIs(kInvalid));
  }

  shard_.set_epoch(1);
  EXPECT_OK(Call(shard_.control(), &Stub::CreateShard, shard_.CreateRequest()));
  ASSERT_OK(Activate(0));
  ExpectUntouched();
}

TEST_F(ShardControlShardTest, EpochThatNoChiefHasDrawnShutsOutNoChief) {
  shard_.Open();
  v1::TakeEpochRequest take;
  *take.mutable_chief() = shard_.Chief();
  v1::CreateShardRequest create = shard_.CreateRequest();
  for (const uint64_t epoch :
       {~uint64_t{0}, ~uint64_t{0} - 1, uint64_t{1} << 62, uint64_t{1} << 33}) {
    take.set_newer_than(epoch);
    create.mutable_chief()->set_epoch(epoch);

    EXPECT_THAT(Call(shard_.control(), &Stub::TakeEpoch, take),
                StatusIs(kInvalid, HasSubstr("newer_than")));
    EXPECT_THAT(Call(shard_.control(), &Stub::CreateShard, create),
                StatusIs(kInvalid, HasSubstr("chief.epoch")));
  }

  ExpectUntouched();
  EXPECT_THAT(TakeEpoch(), IsOkAndHolds(shard_.Chief().epoch() + 1));
}

using R = v1::CreateShardRequest&;
INSTANTIATE_TEST_SUITE_P(
    Descriptions, BadShardTest,
    ::testing::Values(
        BadShard{"JobThatCannotBe",
                 [](R r) { r.mutable_job()->set_batch_size(-1); }},
        BadShard{"WorkersNotFilledIn",
                 [](R r) { r.mutable_job()->clear_total_num_replicas(); }},
        BadShard{"GradientsNotFilledIn",
                 [](R r) { r.mutable_job()->clear_replicas_to_aggregate(); }},
        BadShard{"TokensNotFilledIn",
                 [](R r) {
                   r.mutable_job()->set_mode(v1::COMPATIBLE);
                   r.mutable_job()->clear_initial_tokens();
                 }},
        BadShard{"PartOfNoVariable",
                 [](R r) { r.mutable_parts(0)->set_variable(2); }},
        BadShard{"PartOfANegativeVariable",
                 [](R r) { r.mutable_parts(0)->set_variable(-1); }},
        BadShard{"PartsOutOfOrder",
                 [](R r) { r.mutable_parts(0)->set_index(1); }},
        BadShard{"PartBeyondItsVariable",
                 [](R r) { r.mutable_parts(1)->set_offset(5); }},
        BadShard{"PartBeforeItsVariable",
                 [](R r) { r.mutable_parts(0)->set_offset(-1); }},
        BadShard{"PartTooLargeToBe",
                 [](R r) {
                   r.mutable_parts(0)->set_offset(int64_t{1} << 62);
                   r.mutable_parts(0)->set_count(int64_t{1} << 62);
                 }},
        BadShard{"UnknownType",
                 [](R r) { r.mutable_variables(0)->set_dtype("int3"); }},
        BadShard{"NegativeShape",
                 [](R r) { r.mutable_variables(0)->set_shape(0, -8); }},
        BadShard{"ShapeWithAPositiveProduct",
                 [](R r) {
                   r.mutable_variables(0)->set_shape(0, -8);
                   r.mutable_variables(0)->add_shape(-1);
                 }},
        BadShard{"ShapeThatOverflows",
                 [](R r) {
                   r.mutable_variables(0)->set_shape(0, int64_t{1} << 32);
                   r.mutable_variables(0)->add_shape(int64_t{1} << 32);
                 }},
        BadShard{"VariableWithoutName",
                 [](R r) { r.mutable_variables(0)->clear_name(); }},
        BadShard{"MeantForAnotherServer", [](R r) { r.set_server(1); }},
        BadShard{"PartOfNothing",
                 [](R r) { r.mutable_parts(0)->set_count(0); }},
        BadShard{"UnknownInitializer",
                 [](R r) {
                   r.mutable_variables(0)->set_initializer(
                       static_cast<v1::Initializer>(99));
                 }}),
    [](const auto& info) { return info.param.name; });

TEST_F(ShardControlShardTest, ShardThatDoesNotFitIsRefusedAndAGoodOneCan) {
  shard_.host().SetJobId(kJobId);
  ASSERT_OK(TakeEpoch());
  v1::CreateShardRequest request = shard_.CreateRequest();
  request.mutable_chief()->set_epoch(1);
  request.mutable_variables(0)->set_shape(0, int64_t{1} << 50);
  request.mutable_parts(1)->set_count((int64_t{1} << 50) - 4);

  EXPECT_THAT(Call(shard_.control(), &Stub::CreateShard, request),
              StatusIs(absl::StatusCode::kResourceExhausted));

  shard_.Open();
}

// A shard that takes seconds to be made.
class LargeShardTest : public ShardControlFixture {
 protected:
  using Answer = absl::StatusOr<v1::CreateShardResponse>;

  LargeShardTest() {
    shard_.host().SetJobId(kJobId);
    EXPECT_THAT(TakeEpoch(), IsOkAndHolds(1));
    shard_.set_epoch(1);
    request_ = shard_.CreateRequest();
    request_.set_asks_again(true);
    v1::VariableDescription& w = *request_.mutable_variables(0);
    constexpr int64_t kElements = int64_t{1} << 28;
    w.set_shape(0, kElements);
    w.set_initializer(v1::TRUNCATED_NORMAL);
    w.set_initializer_b(1);
    request_.mutable_parts(1)->set_count(kElements - 4);
  }

  std::future<Answer> Ask() {
    return std::async(std::launch::async, [this] {
      return Call(shard_.control(), &Stub::CreateShard, request_);
    });
  }
  // What the server says once it has been at it for long.
  Answer AnswerTo(std::future<Answer> call) {
    while (call.wait_for(std::chrono::milliseconds(1)) !=
           std::future_status::ready) {
      shard_.AnswerWaits();
    }
    return call.get();
  }

  v1::CreateShardRequest request_;
};

TEST_F(LargeShardTest, RepeatedCallGetsTheProgress) {
  const Answer first = AnswerTo(Ask());
  ASSERT_OK(first);
  ASSERT_TRUE(first->has_working());
  int64_t done = first->working().done_bytes();
  for (int further = 0; further < 2;) {
    const Answer next = AnswerTo(Ask());
    ASSERT_OK(next);
    ASSERT_TRUE(next->has_working());
    EXPECT_GE(next->working().done_bytes(), done);
    if (next->working().done_bytes() > done) ++further;
    done = next->working().done_bytes();
    // The size of the work is not known before it begins.
    if (done > 0) {
      EXPECT_LT(done, next->working().total_bytes());
    }
  }

  shard_.host().StopCreating();

  EXPECT_THAT(Ask().get(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(LargeShardTest, OthersAreServedWhileItIsMade) {
  auto call = Ask();
  while (shard_.host().fill_progress() == nullptr) std::this_thread::yield();
  // More of them than gRPC has threads.
  for (int i = 0; i < 20; ++i) {
    EXPECT_OK(
        CallWithBytes(shard_.channel(), "/grpc.health.v1.Health/Check", ""));
    EXPECT_THAT(Activate(0), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(Call(shard_.parameters(), &v1::ParameterService::Stub::Pull,
                     ServedShard::PullRequest(0)),
                StatusIs(absl::StatusCode::kUnavailable));
  }
  EXPECT_EQ(call.wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);

  shard_.host().StopCreating();

  EXPECT_THAT(call.get(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(LargeShardTest, NewerChiefIsFollowedWhileItIsMade) {
  auto call = Ask();
  while (shard_.host().fill_progress() == nullptr) std::this_thread::yield();

  EXPECT_THAT(TakeEpoch(), IsOkAndHolds(2));

  EXPECT_THAT(Ask().get(), StatusIs(absl::StatusCode::kAborted));
  shard_.host().StopCreating();
  EXPECT_FALSE(call.get().ok());
}

TEST_F(ShardControlShardTest, WrittenPartsAreWhatTrainingStartsFrom) {
  shard_.Create();

  ASSERT_OK(Call(shard_.control(), &Stub::WriteParts, shard_.WriteRequest()));
  ASSERT_OK(Activate(12));

  EXPECT_THAT(shard_.Values(), ElementsAre(5, 5, 5, 5, 5, 5, 5, 5, 2, 2));
  auto pulled = Call(shard_.parameters(), &v1::ParameterService::Stub::Pull,
                     ServedShard::PullRequest(12));
  ASSERT_OK(pulled);
  EXPECT_EQ(pulled->header().step(), 12);
}

TEST_F(ShardControlShardTest, BadWritesAreRefusedAndWriteNothing) {
  shard_.Create();
  v1::WritePartsRequest cut = shard_.WriteRequest();
  cut.mutable_payload()->pop_back();
  v1::WritePartsRequest wider = shard_.WriteRequest();  // as for float64
  wider.mutable_payload()->append(wider.payload());
  v1::WritePartsRequest none = shard_.WriteRequest();
  none.mutable_header()->clear_selector();
  v1::WritePartsRequest beyond = shard_.WriteRequest();
  beyond.mutable_header()->mutable_selector()->mutable_parts()->set_first_part(
      2);
  v1::WritePartsRequest slot = shard_.WriteRequest();
  slot.mutable_header()->mutable_selector()->set_tensor(1);

  EXPECT_THAT(Call(shard_.control(), &Stub::WriteParts, cut),
              StatusIs(kInvalid));
  EXPECT_THAT(Call(shard_.control(), &Stub::WriteParts, wider),
              StatusIs(kInvalid));
  EXPECT_THAT(Call(shard_.control(), &Stub::WriteParts, none),
              StatusIs(kInvalid));
  EXPECT_THAT(Call(shard_.control(), &Stub::WriteParts, beyond),
              StatusIs(kInvalid));
  EXPECT_THAT(Call(shard_.control(), &Stub::WriteParts, slot),
              StatusIs(kInvalid));

  ASSERT_OK(Activate(0));
  EXPECT_THAT(shard_.Values(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2));
}

TEST_F(ShardControlShardTest, OpenServerIsNotWrittenTo) {
  shard_.Open();

  EXPECT_THAT(Call(shard_.control(), &Stub::WriteParts, shard_.WriteRequest()),
              StatusIs(kPrecondition));
  EXPECT_THAT(Activate(3), StatusIs(kPrecondition));
  EXPECT_OK(Activate(0));

  ExpectUntouched();
}

TEST_F(ShardControlShardTest, ServerIsNotOpenedAtAStepThatCannotBe) {
  shard_.Create();
  v1::ActivateRequest scalars;
  *scalars.mutable_chief() = shard_.Chief();
  scalars.add_scalars(0.9f);  // gradient descent has none

  EXPECT_THAT(Activate(-1), StatusIs(kInvalid));
  EXPECT_THAT(Call(shard_.control(), &Stub::Activate, scalars),
              StatusIs(kInvalid));

  ASSERT_OK(Activate(0));
  ExpectUntouched();
}

}  // namespace
}  // namespace lockstep::testing
