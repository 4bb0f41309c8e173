#ifndef LOCKSTEP_TESTS_UNIT_SERVER_SHARD_PARTS_SHARD_STATE_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_SERVER_SHARD_PARTS_SHARD_STATE_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/parts/shard_state.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {

// A ShardState of the parts of ShardFixture.
class ShardStateFixture : public ShardFixture {
 protected:
  std::unique_ptr<ShardState> Create() {
    auto state = ShardState::Create(options_);
    EXPECT_OK(state);
    return state.ok() ? *std::move(state) : nullptr;
  }
  std::unique_ptr<ShardState> CreateActive() {
    auto state = Create();
    EXPECT_OK(state->Activate(0, {}));
    return state;
  }
  template <typename T>
  static std::vector<T> Read(const ShardState& state, int part,
                             int tensor = 0) {
    std::vector<std::byte> bytes(kPartSize);
    EXPECT_OK(state.values().Read(part, tensor, absl::MakeSpan(bytes)));
    return FromBytes<T>(bytes);
  }
  static int64_t StepOf(const ShardState& state) {
    std::vector<std::byte> bytes(kPartSize);
    return state.values().Read(0, 0, absl::MakeSpan(bytes)).value_or(-100);
  }
  // Updates all parts from the gradients of two workers.
  static void UpdateAll(ShardState& state, int64_t step, float one,
                        float other) {
    const std::vector<PartGradient> a = Gradients(one);
    const std::vector<PartGradient> b = Gradients(other);
    for (int part = 0; part < kParts; ++part) {
      const PartGradient both[] = {a[part], b[part]};
      EXPECT_THAT(state.updates().Update(part, step, both),
                  lockstep::testing::IsOkAndHolds(true));
    }
  }
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_TESTS_UNIT_SERVER_SHARD_PARTS_SHARD_STATE_FIXTURE_H_
