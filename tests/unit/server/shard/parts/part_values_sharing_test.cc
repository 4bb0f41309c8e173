// Values that processes of the same host read in place.

#include <memory>
#include <vector>

#include "common/memory/write_counters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/parts/part_values.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;

class PartValuesSharingTest : public ShardFixture {
 protected:
  std::unique_ptr<ShardState> CreateActive() {
    auto state = ShardState::Create(options_);
    EXPECT_OK(state);
    EXPECT_OK((*state)->Activate(0, {}));
    return *std::move(state);
  }
  void Open(const ShardState& state) {
    auto shared = state.values().Share();
    ASSERT_OK(shared);
    auto values =
        PeerMemory::Open(shared->values, PeerMemory::Require::kAnyFile);
    auto counters =
        PeerMemory::Open(shared->counters, PeerMemory::Require::kSealed);
    ASSERT_OK(values);
    ASSERT_OK(counters);
    values_ = *std::move(values);
    counters_ = *std::move(counters);
  }
  // What another process reads at a place.
  std::vector<float> ReadAt(const SharedPlace& place) const {
    return FromBytes<float>(values_->bytes().subspan(place.offset, kPartSize));
  }
  bool Written(const SharedPlace& place) const {
    return WrittenSince(*counters_, place.counter, place.writes);
  }
  static void Step(ShardState& state, int64_t step) {
    const std::vector<PartGradient> gradients = Gradients(2);
    for (int part = 0; part < kParts; ++part) {
      const PartGradient both[] = {gradients[part], gradients[part]};
      ASSERT_OK(state.updates().Update(part, step, both));
    }
    ASSERT_OK(state.updates().MarkPrepared(step + 1, 1));
    ASSERT_OK(state.updates().Commit(step + 1));
  }
  static SharedPlace Committed(const ShardState& state, int part) {
    int64_t step = 0;
    return state.values().LendCommitted(part, step).place;
  }

  std::shared_ptr<const PeerMemory> values_;
  std::shared_ptr<const PeerMemory> counters_;
};

TEST_F(PartValuesSharingTest, LentValuesAreWhereTheirPlaceSays) {
  auto state = CreateActive();
  Open(*state);

  EXPECT_THAT(ReadAt(Committed(*state, 1)), Each(1));
  const std::vector<PartGradient> gradients = Gradients(2);
  ASSERT_OK(state->updates().Update(1, 0, {{gradients[1]}}));

  EXPECT_THAT(ReadAt(state->values().LendNext(1).place), Each(0));
  EXPECT_THAT(ReadAt(Committed(*state, 1)), Each(1));
}

TEST_F(PartValuesSharingTest, ValuesStayUntilTheStepAfterTheNextIsMade) {
  auto state = CreateActive();
  Open(*state);
  const SharedPlace first = Committed(*state, 0);

  Step(*state, 0);
  EXPECT_FALSE(Written(first));
  EXPECT_FALSE(Written(Committed(*state, 0)));
  const std::vector<PartGradient> gradients = Gradients(2);
  ASSERT_OK(state->updates().Update(0, 1, {{gradients[0]}}));

  EXPECT_TRUE(Written(first));
  EXPECT_FALSE(Written(Committed(*state, 0)));
  EXPECT_FALSE(Written(Committed(*state, 1)));
}

TEST_F(PartValuesSharingTest, AStepThatIsRedoneOverwritesWhatItLent) {
  auto state = CreateActive();
  Open(*state);
  const std::vector<PartGradient> gradients = Gradients(2);
  ASSERT_OK(state->updates().Update(0, 0, {{gradients[0]}}));
  const SharedPlace lent = state->values().LendNext(0).place;
  EXPECT_FALSE(Written(lent));

  ASSERT_OK(state->updates().Update(0, 0, {{gradients[0]}}));

  EXPECT_TRUE(Written(lent));
}

TEST_F(PartValuesSharingTest, NothingIsSharedWhereValuesChangeInPlace) {
  options_.job.mode = SyncMode::kCompatible;

  EXPECT_THAT(
      CreateActive()->values().Share().status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("compatible")));
}

TEST_F(PartValuesSharingTest, NothingIsSharedWhereAWorkerHasSeveralShares) {
  options_.job.total_num_replicas = 1;

  EXPECT_THAT(CreateActive()->values().Share().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("next share of a step")));
}

TEST_F(PartValuesSharingTest, NothingIsSharedWhereThatIsTurnedOff) {
  options_.shared_memory = false;

  EXPECT_THAT(CreateActive()->values().Share().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("--shared_memory=off")));
}

TEST_F(PartValuesSharingTest, AServerWithoutPartsSharesNothing) {
  options_.parts.clear();

  EXPECT_THAT(CreateActive()->values().Share().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no variables")));
}

}  // namespace
}  // namespace lockstep::server
