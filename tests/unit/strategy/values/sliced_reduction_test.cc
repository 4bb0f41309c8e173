#include "strategy/values/sliced_reduction.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "common/collective/local_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/values/replica_group.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

size_t BytesIn(const std::vector<Leaf>& leaves) {
  size_t bytes = 0;
  for (const Leaf& leaf : leaves) {
    bytes += std::get<Value>(leaf).bytes().size();
  }
  return bytes;
}

// A member that counts the bytes which it gives to others.
class CountingMember final : public Collective {
 public:
  CountingMember(std::unique_ptr<Collective> member, bool scatters_apart)
      : member_(std::move(member)), scatters_apart_(scatters_apart) {}
  int rank() const override { return member_->rank(); }
  int members() const override { return member_->members(); }
  absl::StatusOr<std::vector<Parcel>> Exchange(
      const std::string& description, std::vector<Leaf> mine) override {
    given_ += BytesIn(mine) * static_cast<size_t>(members() - 1);
    return member_->Exchange(description, std::move(mine));
  }
  absl::StatusOr<std::vector<Parcel>> Scatter(
      const std::string& description,
      std::vector<std::vector<Leaf>> for_member) override {
    for (int r = 0; r < members(); ++r) {
      if (r != rank()) given_ += BytesIn(for_member[static_cast<size_t>(r)]);
    }
    return member_->Scatter(description, std::move(for_member));
  }
  bool scatters_apart() const override { return scatters_apart_; }
  size_t given() const { return given_; }

 private:
  const std::unique_ptr<Collective> member_;
  const bool scatters_apart_;
  size_t given_ = 0;
};

// Worker 0 of three, whose peers give `odd` in the calls whose description ends
// with `call`, and the leaves of worker 0 in all others.
class AmongOddWorkers final : public Collective {
 public:
  AmongOddWorkers(std::string call, std::vector<Leaf> odd)
      : call_(std::move(call)), odd_(std::move(odd)) {}
  int rank() const override { return 0; }
  int members() const override { return 3; }
  absl::StatusOr<std::vector<Parcel>> Exchange(
      const std::string& description, std::vector<Leaf> mine) override {
    const auto own = std::make_shared<const std::vector<Leaf>>(std::move(mine));
    const auto odd = std::make_shared<const std::vector<Leaf>>(odd_);
    const Parcel& others = description.ends_with(call_) ? odd : own;
    return std::vector<Parcel>{own, others, others};
  }
  absl::StatusOr<std::vector<Parcel>> Scatter(
      const std::string& description,
      std::vector<std::vector<Leaf>> for_member) override {
    return Exchange(description, std::move(for_member[0]));
  }

 private:
  const std::string call_;
  const std::vector<Leaf> odd_;
};

class SlicedReductionTest : public ::testing::Test {
 protected:
  void MakeGroup(int workers, bool scatters_apart = true) {
    members_.clear();
    for (auto& member : MakeLocalGroup(workers, absl::Minutes(1))) {
      members_.push_back(
          std::make_unique<CountingMember>(std::move(member), scatters_apart));
    }
  }
  void ForEach(const std::function<void(CountingMember&)>& work) {
    std::vector<std::thread> threads;
    for (const auto& member : members_) {
      threads.emplace_back([&] { work(*member); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  // Numbers whose sum depends on the order of addition.
  static Value Numbers(int replica, int64_t rows, int64_t columns) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < rows * columns; ++i) {
      numbers.push_back(static_cast<float>(i % 97 + 1) * 1e-3F /
                            static_cast<float>(replica + 3) +
                        static_cast<float>(replica) * 1e4F);
    }
    return Value::Of(ElementType::kFloat32, {rows, columns}, numbers);
  }

  std::vector<std::unique_ptr<CountingMember>> members_;
};

TEST_F(SlicedReductionTest, HasTheBitsOfOneReductionOfAllReplicas) {
  for (const auto& [workers, replicas] :
       {std::pair{3, 1}, {4, 1}, {3, 2}, {5, 3}}) {
    MakeGroup(workers);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      std::vector<Value> all;
      for (int r = 0; r < workers * replicas; ++r) {
        all.push_back(Numbers(r, 7, 11));
      }
      const Value expected = Reduce(op, SumOrder::kRank, all).value();
      ForEach([&, replicas = replicas](CountingMember& member) {
        std::vector<std::vector<Value>> mine;
        for (int r = 0; r < replicas; ++r) {
          const auto id = static_cast<size_t>(member.rank() * replicas + r);
          // Fewer elements than workers are a slice for some alone.
          mine.push_back({all[id], Value::Scalar(1)});
        }
        const auto reduced = ReduceInSlices(member, op, "call", mine);
        ASSERT_THAT(reduced, IsOk());
        EXPECT_EQ(reduced->at(0), expected);
        EXPECT_EQ(reduced->at(1),
                  Value::Scalar(op == ReduceOp::kMean
                                    ? 1.F
                                    : static_cast<float>(all.size())));
      });
    }
  }
}

TEST_F(SlicedReductionTest, AWorkerSendsTwiceTheShareOfTheOthers) {
  MakeGroup(4);
  const Value value = Numbers(0, 400, 100);
  ForEach([&](CountingMember& member) {
    const std::vector<Value> mine = {value};
    ASSERT_THAT(ReduceInSlices(member, ReduceOp::kSum, "call", {{mine}}),
                IsOk());
    EXPECT_EQ(member.given(), 2 * 3 * value.bytes().size() / 4);
  });
}

TEST_F(SlicedReductionTest, PaysForLargeValuesOfManyWorkers) {
  MakeGroup(3);
  EXPECT_TRUE(PaysToSlice(*members_[0], 1 << 20));
  EXPECT_FALSE(PaysToSlice(*members_[0], 1 << 10)) << "the call costs more";
  MakeGroup(2);
  EXPECT_FALSE(PaysToSlice(*members_[0], 1 << 20)) << "the bytes are the same";
  MakeGroup(3, /*scatters_apart=*/false);
  EXPECT_FALSE(PaysToSlice(*members_[0], 1 << 20)) << "more bytes are sent";
}

// Under the same description, as no worker of this build gives them.
TEST_F(SlicedReductionTest, LeavesThatAWorkerMustNotGiveAreRefused) {
  const auto wide = Value::Of<double>(ElementType::kFloat64, {1}, {1});
  const Slices rows = {
      {0}, Value::Of<float>(ElementType::kFloat32, {1}, {1}), std::nullopt};
  const std::vector<std::vector<Value>> mine = {
      {Value::Of<float>(ElementType::kFloat32, {3}, {1, 2, 3})}};
  const auto refused = [&](const std::string& call,
                           const std::vector<Leaf>& odd) {
    AmongOddWorkers group(call, odd);
    EXPECT_THAT(ReduceInSlices(group, ReduceOp::kSum, "call", mine),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << call << " of " << odd.size();
  };
  for (const std::string call : {" in slices", ", reduced"}) {
    refused(call, {});
    refused(call, {rows});
    refused(call, {wide});
    refused(call, {mine[0][0], mine[0][0]});
  }
}

// The group of replicas takes it, where it pays, and has the same results.
TEST_F(SlicedReductionTest, ReplicaGroupsReduceLargeValuesInSlices) {
  MakeGroup(3);
  std::vector<Value> all;
  for (int r = 0; r < 6; ++r) all.push_back(Numbers(r, 300, 100));
  const Value expected = Reduce(ReduceOp::kMean, SumOrder::kRank, all).value();
  ForEach([&](CountingMember& member) {
    const ReplicaGroup group({Kind::kMultiWorkerMirrored, 2, {}}, &member);
    const auto first = static_cast<size_t>(2 * member.rank());
    const Distributed value{Distributed::Form::kPerReplica,
                            {all[first], all[first + 1]}};
    const auto reduced =
        group.Reduce(ReduceOp::kMean, Toward::kAll, {&value, 1});
    ASSERT_THAT(reduced, IsOk());
    EXPECT_EQ(std::get<Value>(reduced->at(0)), expected);
    // Two replicas' slices to two workers, and the own slice of the mean.
    EXPECT_EQ(member.given(), 4 * expected.bytes().size() / 3 +
                                  2 * expected.bytes().size() / 3);
  });
}

// As a group that moves values by NCCL, which sends everything to all.
TEST_F(SlicedReductionTest, AGroupThatScattersByAnExchangeSendsValuesOnce) {
  MakeGroup(3, /*scatters_apart=*/false);
  std::vector<Value> all;
  for (int r = 0; r < 3; ++r) all.push_back(Numbers(r, 512, 512));  // 1 MiB
  const Value expected = Reduce(ReduceOp::kSum, SumOrder::kRank, all).value();
  ForEach([&](CountingMember& member) {
    const ReplicaGroup group({Kind::kMultiWorkerMirrored, 1, {}}, &member);
    const Distributed value{Distributed::Form::kPerReplica,
                            {all[static_cast<size_t>(member.rank())]}};
    const auto reduced =
        group.Reduce(ReduceOp::kSum, Toward::kAll, {&value, 1});
    ASSERT_THAT(reduced, IsOk());
    EXPECT_EQ(std::get<Value>(reduced->at(0)), expected);
    EXPECT_EQ(member.given(), 2 * expected.bytes().size());
  });
}

TEST_F(SlicedReductionTest, WorkersThatDifferAreRefusedAtAll) {
  MakeGroup(3);
  ForEach([&](CountingMember& member) {
    const ReplicaGroup group({Kind::kMultiWorkerMirrored, 1, {}}, &member);
    const Distributed value{Distributed::Form::kPerReplica,
                            {Numbers(0, member.rank() == 1 ? 5 : 300, 100)}};
    EXPECT_THAT(group.Reduce(ReduceOp::kSum, Toward::kAll, {&value, 1}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("[300,100]"), HasSubstr("[5,100]"))));
  });
}

}  // namespace
}  // namespace lockstep::strategy
