// The group over NCCL around a group of processes: gRPC carries the rest.

#include <string>

#include "gmock/gmock.h"
#include "strategy/nccl/nccl_group.h"
#include "strategy/strategy.h"
#include "tests/cuda_on_cpu/control.h"
#include "tests/integration/strategy/workers/group_fixture.h"
#include "tests/nccl_on_cpu/control.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kAborted = absl::StatusCode::kAborted;

class NcclNetworkTest : public GroupFixture {
 protected:
  using Made = absl::StatusOr<std::unique_ptr<Collective>>;

  NcclNetworkTest() {
    cuda_on_cpu::Settings gpus;
    gpus.devices = 4;
    gpus.seed = 7;
    cuda_on_cpu::Configure(gpus);
    nccl_on_cpu::Configure({});
  }
  ~NcclNetworkTest() override {
    EXPECT_EQ(nccl_on_cpu::Mistake(), "");
    EXPECT_EQ(nccl_on_cpu::LiveCommunicators(), 0);
    EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0u);
  }

  std::vector<Made> MakeAll() {
    std::vector<Group> groups = JoinAll();
    NcclGroup::Options options;
    options.required = true;
    options.timeout = absl::Seconds(60);
    options.grace = absl::Milliseconds(200);
    options.libraries.cuda = {LOCKSTEP_SIMULATED_CUDA};
    options.libraries.nccl = {LOCKSTEP_SIMULATED_NCCL};
    std::vector<Made> made(groups.size());
    ForEach(groups.size(), [&](size_t r) {
      ASSERT_THAT(groups[r], IsOk());
      made[r] = NcclGroup::Make(*std::move(groups[r]), options);
    });
    return made;
  }

  // 100 KB of numbers that no other rank has.
  static Value Large(size_t rank) {
    std::vector<float> numbers(25'000);
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<float>(rank + 1) / static_cast<float>(i + 1);
    }
    return Value::Of(ElementType::kFloat32, {25'000}, numbers);
  }
};

TEST_F(NcclNetworkTest, ParcelsAreComplete) {
  Reserve(3);
  const std::vector<Made> groups = MakeAll();
  ForEach(3, [&](size_t r) {
    ASSERT_THAT(groups[r], IsOk());
    for (int call = 0; call < 5; ++call) {
      const auto parcels =
          (*groups[r])
              ->Exchange("x", {Value::Scalar(static_cast<float>(r)), Large(r)});
      ASSERT_THAT(parcels, IsOk());
      for (size_t from = 0; from < 3; ++from) {
        EXPECT_EQ((*parcels)[from]->at(0),
                  Leaf(Value::Scalar(static_cast<float>(from))));
        EXPECT_EQ((*parcels)[from]->at(1), Leaf(Large(from)));
      }
    }
  });
}

TEST_F(NcclNetworkTest, SumsOfAStrategyHaveTheBitsOfOneProcess) {
  StrategyOptions options;
  options.replicas = 4;
  const auto sum_of = [](Strategy& strategy) {
    const auto sums = strategy.Run([](Replica& replica) {
      return replica.AllReduce(ReduceOp::kSum,
                               Large(static_cast<size_t>(replica.id())));
    });
    return sums.ok() ? sums->local()[0] : Value();
  };
  const auto alone = Strategy::Make(options);
  ASSERT_THAT(alone, IsOk());
  const Value expected = sum_of(**alone);

  Reserve(2);
  std::vector<Made> groups = MakeAll();
  options.kind = Kind::kMultiWorkerMirrored;
  options.replicas = 2;
  ForEach(2, [&](size_t r) {
    ASSERT_THAT(groups[r], IsOk());
    const auto strategy = Strategy::Make(options, *std::move(groups[r]));
    ASSERT_THAT(strategy, IsOk());
    EXPECT_EQ(sum_of(**strategy), expected);
  });
}

TEST_F(NcclNetworkTest, AMemberWhoseNcclFailsEndsTheGroupForTheOthersAtOnce) {
  Reserve(3);
  const std::vector<Made> groups = MakeAll();
  nccl_on_cpu::SetFault({"ncclAllGather", /*rank=*/1});
  ForEach(3, [&](size_t r) {
    ASSERT_THAT(groups[r], IsOk());
    const absl::Status end = (*groups[r])->Exchange("sum", {Large(r)}).status();
    if (r == 1) {
      EXPECT_THAT(end, StatusIs(absl::StatusCode::kInternal,
                                HasSubstr("ncclAllGather: internal error")));
    } else {
      EXPECT_THAT(end, StatusIs(kAborted, AllOf(HasSubstr("sum: "),
                                                HasSubstr("has left"))));
    }
    EXPECT_EQ((*groups[r])->Exchange("sum", {}).status().code(), end.code());
  });
  EXPECT_EQ(nccl_on_cpu::Aborted(), 3);
}

TEST_F(NcclNetworkTest, AMemberThatHangsWhileAnotherLeavesIsAborted) {
  Reserve(3);
  std::vector<Made> groups = MakeAll();
  nccl_on_cpu::SetHang(2);
  nccl_on_cpu::SetFault({"ncclAllGather", /*rank=*/0});
  ForEach(3, [&](size_t r) {
    ASSERT_THAT(groups[r], IsOk());
    EXPECT_FALSE((*groups[r])->Exchange("sum", {Large(r)}).ok());
    groups[r]->reset();
  });
}

}  // namespace
}  // namespace lockstep::strategy
