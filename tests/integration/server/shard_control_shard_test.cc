#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard_control_service.h"
#include "tests/integration/server/shard_control_fixture.h"
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
