#include "strategy/values/replica_group.h"

#include <thread>

#include "common/collective/local_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Value Row(const std::vector<float>& numbers) {
  return Value::Of(ElementType::kFloat32,
                   {static_cast<int64_t>(numbers.size())}, numbers);
}

Distributed Each(std::vector<Leaf> local) {
  return {Distributed::Form::kPerReplica, std::move(local)};
}

ReplicaGroup Mirrored2(SumOrder order = SumOrder::kRank) {
  return ReplicaGroup({Kind::kMirrored, 2, {}, order}, nullptr);
}

TEST(ReplicaGroupTest, SumsAndMeansOfTheReplicasOfAProcess) {
  const ReplicaGroup group = Mirrored2();
  const Distributed values[] = {Each({Row({1, 2}), Row({3, 6})})};
  EXPECT_EQ(
      std::get<Value>((*group.Reduce(ReduceOp::kSum, Toward::kAll, values))[0]),
      Row({4, 8}));
  EXPECT_EQ(std::get<Value>(
                (*group.Reduce(ReduceOp::kMean, Toward::kPlace, values))[0]),
            Row({2, 4}));
}

TEST(ReplicaGroupTest, TheSumOfAPlainOrMirroredValueIsRefused) {
  const ReplicaGroup group = Mirrored2();
  for (const auto form :
       {Distributed::Form::kPlain, Distributed::Form::kMirrored}) {
    const Distributed value{form, {Row({1})}};
    EXPECT_THAT(group.Reduce(ReduceOp::kSum, Toward::kAll, {&value, 1}),
                StatusIs(kInvalid, HasSubstr("unclear")));
    EXPECT_THAT(group.Reduce(ReduceOp::kMean, Toward::kAll, {&value, 1}),
                IsOk());
  }
}

TEST(ReplicaGroupTest, ShapesThatDifferAreRefused) {
  const Distributed value = Each({Row({1, 2}), Row({3})});
  EXPECT_THAT(Mirrored2().Reduce(ReduceOp::kSum, Toward::kAll, {&value, 1}),
              StatusIs(kInvalid, HasSubstr("float32 [2]")));
  const Distributed mixed =
      Each({Row({1, 2}), Slices{{0}, Row({1}), std::nullopt}});
  EXPECT_THAT(Mirrored2().Reduce(ReduceOp::kSum, Toward::kAll, {&mixed, 1}),
              StatusIs(kInvalid));
}

TEST(ReplicaGroupTest, AValueHasAComponentForEachReplica) {
  const Leaf row = Row({1, 2});
  for (const size_t count : {0, 1, 2, 3, 5}) {
    const ReplicaGroup group({Kind::kMirrored, 4, {}}, nullptr);
    const Distributed value = Each(std::vector<Leaf>(count, row));
    const auto refused = StatusIs(kInvalid, HasSubstr("must have 4"));
    for (const auto op : {ReduceOp::kSum, ReduceOp::kMean}) {
      EXPECT_THAT(group.Reduce(op, Toward::kAll, {&value, 1}), refused);
      EXPECT_THAT(group.ReduceAlong(op, value, {}), refused);
      EXPECT_THAT(group.ReduceAlong(op, value, {0}), refused);
    }
    EXPECT_THAT(group.Gather(value, 0), refused);
  }
  // A value that all share needs one component alone.
  const Distributed shared{Distributed::Form::kMirrored, {row}};
  EXPECT_THAT(Mirrored2().Reduce(ReduceOp::kMean, Toward::kAll, {&shared, 1}),
              IsOk());
  EXPECT_THAT(Mirrored2().ReduceAlong(ReduceOp::kMean, shared, {0}), IsOk());
}

// So a program of one replica has the errors that it would have with several.
TEST(ReplicaGroupTest, AReplicaThatIsAloneHasItsValuesChecked) {
  const Value misfit = Value::Of<float>(ElementType::kFloat32, {3}, {1});
  const auto refused = StatusIs(kInvalid, HasSubstr("has 1 elements"));
  for (const Kind kind : {Kind::kDefault, Kind::kOneDevice, Kind::kMirrored,
                          Kind::kCentral, Kind::kMultiWorkerMirrored}) {
    const ReplicaGroup group({kind, 1, {}}, nullptr);
    for (const Leaf& leaf :
         {Leaf(misfit), Leaf(Slices{{0, 1, 2}, misfit, std::nullopt})}) {
      const Distributed value = Each({leaf});
      EXPECT_THAT(group.Reduce(ReduceOp::kSum, Toward::kAll, {&value, 1}),
                  refused);
      EXPECT_THAT(group.ReduceAlong(ReduceOp::kMean, value, {}), refused);
    }
  }
  // Nothing of these is added up.
  for (const auto form :
       {Distributed::Form::kPlain, Distributed::Form::kMirrored}) {
    const Distributed value{form, {misfit}};
    EXPECT_THAT(Mirrored2().Reduce(ReduceOp::kMean, Toward::kAll, {&value, 1}),
                refused);
  }
}

TEST(ReplicaGroupTest, DenseValuesAndSlicesAreNotReducedTogether) {
  const Leaf slices = Slices{{0}, Row({1}), std::nullopt};
  for (const Distributed& mixed :
       {Each({Row({1}), slices}), Each({slices, Row({1})})}) {
    EXPECT_THAT(Mirrored2().Reduce(ReduceOp::kSum, Toward::kAll, {&mixed, 1}),
                StatusIs(kInvalid));
    EXPECT_THAT(Mirrored2().ReduceAlong(ReduceOp::kSum, mixed, {0}),
                StatusIs(kInvalid, HasSubstr("slices")));
  }
}

TEST(ReplicaGroupTest, AMeanAlongAnAxisCountsAllElements) {
  const Distributed value = Each({Row({0, 1, 2, 3}), Row({4, 5})});
  EXPECT_EQ(*Mirrored2().ReduceAlong(ReduceOp::kMean, value, {-1}),
            Value::Scalar(2.5));
  EXPECT_THAT(Mirrored2().ReduceAlong(ReduceOp::kMean, value, {1}),
              StatusIs(kInvalid, HasSubstr("axis is 1")));
  EXPECT_THAT(Mirrored2().ReduceAlong(ReduceOp::kMean, value, {0, -1}),
              StatusIs(kInvalid, HasSubstr("twice")));
}

TEST(ReplicaGroupTest, Int32TravelsAloneInTheOrderOfARing) {
  const Value number = Value::Of<int32_t>(ElementType::kInt32, {}, {1});
  const Distributed two[] = {Each({number, number}), Each({number, number})};
  EXPECT_THAT(
      Mirrored2(SumOrder::kRing).Reduce(ReduceOp::kSum, Toward::kAll, two),
      StatusIs(kInvalid, HasSubstr("int32")));
  EXPECT_THAT(Mirrored2().Reduce(ReduceOp::kSum, Toward::kAll, two), IsOk());
}

TEST(ReplicaGroupTest, WorkersWithOtherOrdersOfSumsAreRefused) {
  // Small values, and values that are reduced in slices in the order of ranks.
  for (const size_t count : {1, 100'000}) {
    auto members = MakeLocalGroup(3, absl::Minutes(5));
    std::vector<std::thread> threads;
    for (auto& member : members) {
      threads.emplace_back([&member, count] {
        const bool rings = member->rank() == 1;
        const StrategyOptions options{
            Kind::kMultiWorkerMirrored,
            1,
            {},
            rings ? SumOrder::kRing : SumOrder::kRank};
        const ReplicaGroup group(options, member.get());
        const Distributed value = Each({Row(std::vector<float>(count, 1))});
        EXPECT_THAT(group.Reduce(ReduceOp::kSum, Toward::kAll, {&value, 1}),
                    StatusIs(kInvalid, HasSubstr("around a ring at rank 1")));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(ReplicaGroupTest, WorkersWithOtherPacksOfARingAreRefused) {
  auto members = MakeLocalGroup(2, absl::Minutes(5));
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&member] {
      const ReplicaGroup group(
          {Kind::kMultiWorkerMirrored, 1, {}, SumOrder::kRing}, member.get());
      const Distributed value = Each({Row({1})});
      CommunicationOptions packs;
      if (member->rank() == 1) packs.bytes_per_pack = 8;
      EXPECT_THAT(
          group.Reduce(ReduceOp::kSum, Toward::kAll, {&value, 1}, packs),
          StatusIs(kInvalid, HasSubstr("in packs of 8 at rank 1")));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The sums along both axes have one shape.
TEST(ReplicaGroupTest, WorkersThatReduceAlongOtherAxesAreRefused) {
  auto members = MakeLocalGroup(2, absl::Minutes(5));
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&member] {
      const ReplicaGroup group({Kind::kMultiWorkerMirrored, 1, {}},
                               member.get());
      const bool first = group.worker() == 0;
      const Distributed square = Each({Row({1, 2, 3, 4}).Reshaped({2, 2})});
      // One axis, counted from either end.
      EXPECT_EQ(*group.ReduceAlong(ReduceOp::kSum, square, {first ? 1 : -1}),
                Row({6, 14}));
      EXPECT_THAT(
          group.ReduceAlong(ReduceOp::kSum, square, {first ? 0 : 1}),
          StatusIs(kInvalid, HasSubstr("SUM along axes [1] at rank 1")));
      EXPECT_THAT(
          group.ReduceAlong(first ? ReduceOp::kSum : ReduceOp::kMean, square,
                            {0}),
          StatusIs(kInvalid, HasSubstr("MEAN along axes [0] at rank 1")));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Else the worker whose call is right would wait for the other.
TEST(ReplicaGroupTest, ACallThatOneWorkerCannotMakeFailsAtBoth) {
  auto members = MakeLocalGroup(2, absl::Minutes(5));
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&member] {
      const ReplicaGroup group({Kind::kMultiWorkerMirrored, 1, {}},
                               member.get());
      const bool first = group.worker() == 0;
      const Distributed row = Each({Row({1, 2})});
      const Distributed none = Each({});
      const auto refused = [&](const auto& result, const std::string& why) {
        EXPECT_THAT(result, StatusIs(kInvalid, HasSubstr(why)));
      };
      CommunicationOptions negative;
      negative.bytes_per_pack = -1;
      const CommunicationOptions usual;
      refused(group.Reduce(ReduceOp::kSum, Toward::kAll, {&row, 1},
                           first ? usual : negative),
              "bytes_per_pack is -1");
      refused(
          group.Reduce(ReduceOp::kSum, Toward::kAll, {first ? &row : &none, 1}),
          "components");
      refused(group.ReduceAlong(ReduceOp::kMean, row, {first ? 0 : 1}),
              "axis is 1");
      refused(group.ReduceAlong(ReduceOp::kMean, first ? row : none, {0}),
              "components");
      refused(group.Gather(first ? row : none, 0), "components");
      refused(group.Gather(row, 0, first ? usual : negative),
              "bytes_per_pack is -1");
      EXPECT_THAT(group.Gather(row, 0).status(), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ReplicaGroupTest, WorkersReduceTogetherAndNameOtherCalls) {
  auto members = MakeLocalGroup(2, absl::Minutes(5));
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&member] {
      const ReplicaGroup group({Kind::kMultiWorkerMirrored, 2, {}},
                               member.get());
      const float first = static_cast<float>(group.first_replica());
      const Distributed ids = Each({Row({first}), Row({first + 1})});
      EXPECT_EQ(std::get<Value>((
                    *group.Reduce(ReduceOp::kSum, Toward::kAll, {&ids, 1}))[0]),
                Row({6}));
      const Distributed plain{Distributed::Form::kPlain, {Row({5})}};
      EXPECT_EQ(std::get<Value>((*group.Reduce(ReduceOp::kSum, Toward::kAll,
                                               {&plain, 1}))[0]),
                Row({10}));
      EXPECT_EQ(std::get<Value>(*group.Gather(ids, 0)), Row({0, 1, 2, 3}));
      const auto make = [&] { return absl::StatusOr<Value>(Row({first + 7})); };
      EXPECT_EQ(*group.FromFirstWorker("Create", make), Row({7}));
      EXPECT_THAT(group.FromFirstWorker(
                      group.worker() == 0 ? "Create(a)" : "Create(b)", make),
                  StatusIs(kInvalid, HasSubstr("Create(b) at rank 1")));
      Distributed labeled = ids;
      labeled.label = group.worker() == 0 ? "Read(a)" : "Read(b)";
      EXPECT_THAT(
          group.Reduce(ReduceOp::kSum, Toward::kAll, {&labeled, 1}),
          StatusIs(kInvalid, HasSubstr("float32 [1] for Read(b) at rank 1")));
      EXPECT_THAT(group.ReduceAlong(ReduceOp::kSum, labeled, {0}),
                  StatusIs(kInvalid, HasSubstr("for Read(b) at rank 1")));
      const ReduceOp op =
          group.worker() == 0 ? ReduceOp::kSum : ReduceOp::kMean;
      EXPECT_THAT(group.Reduce(op, Toward::kAll, {&ids, 1}),
                  StatusIs(kInvalid, HasSubstr("reduce MEAN")));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace lockstep::strategy
