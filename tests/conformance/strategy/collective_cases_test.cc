// Cases 95 to 97, 100 to 102 and 104: collectives.

#include <cmath>
#include <functional>
#include <utility>

#include "common/collective/local_group.h"
#include "common/collective/reduction.h"
#include "tests/conformance/strategy/fleet.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// The numbers of the values in each pack.
using Packs = std::vector<std::vector<size_t>>;

class CollectiveCases : public CaseTest {
 protected:
  // Value `number` of a replica. The last bits of the sums of three and more
  // replicas depend on the replica with which a sum begins.
  static std::vector<float> Elements(int replica, size_t number, size_t size) {
    std::vector<float> elements;
    for (size_t e = 0; e < size; ++e) {
      const size_t mixed = 7 * static_cast<size_t>(replica) + 3 * number + e;
      elements.push_back(1 / static_cast<float>(3 + mixed % 13));
    }
    return elements;
  }
  // The sums over all replicas of values with these sizes, if they go around a
  // ring in these packs.
  std::vector<Leaf> SumsIn(const Packs& packs,
                           const std::vector<size_t>& sizes) const {
    std::vector<Leaf> sums(sizes.size());
    for (const std::vector<size_t>& pack : packs) {
      std::vector<Value> joined;
      for (int r = 0; r < all(); ++r) {
        std::vector<float> elements;
        for (const size_t i : pack) {
          const std::vector<float> more = Elements(r, i, sizes[i]);
          elements.insert(elements.end(), more.begin(), more.end());
        }
        joined.push_back(Row(elements));
      }
      const std::vector<float> sum =
          lockstep::Reduce(ReduceOp::kSum, SumOrder::kRing, joined)
              ->Elements<float>();
      auto place = sum.begin();
      for (const size_t i : pack) {
        const auto end = place + static_cast<std::ptrdiff_t>(sizes[i]);
        sums[i] = Row({place, end});
        place = end;
      }
    }
    return sums;
  }
};

// TensorFlow fills packs from the last value of a call on: the sizes of the
// cases, in bytes, are here from right to left, and those of case 96 four times
// as large.
TEST_P(CollectiveCases, Case95And96ValuesTravelInTensorFlowsPacks) {
  struct Call {
    std::vector<size_t> sizes;  // in elements
    int64_t bytes_per_pack;
    Packs packs;
  };
  const Fleet fleet = Make(GetParam(), absl::Minutes(1), SumOrder::kRing);
  for (const Call& call : {Call{{1, 200, 8, 32}, 200, {{3, 2, 1}, {0}}},
                           Call{{1, 100, 100}, 400, {{2, 1}, {0}}},
                           Call{{1, 100, 100}, 0, {{2, 1, 0}}}}) {
    const std::vector<Leaf> expected = SumsIn(call.packs, call.sizes);
    Packs one(1), apart;
    for (size_t i = call.sizes.size(); i-- > 0;) {
      one[0].push_back(i);
      apart.push_back({i});
    }
    for (const Packs& other : {one, apart}) {
      // The sum of two numbers has no order.
      if (all() < 3 || other == call.packs) continue;
      EXPECT_NE(SumsIn(other, call.sizes), expected);
    }
    Each(fleet, [&](Strategy& s) {
      const auto sums = s.Run([&](Replica& replica) {
        std::vector<Leaf> values;
        for (size_t i = 0; i < call.sizes.size(); ++i) {
          values.push_back(Row(Elements(replica.id(), i, call.sizes[i])));
        }
        return replica.AllReduce(ReduceOp::kSum, std::move(values),
                                 {call.bytes_per_pack});
      });
      ASSERT_THAT(sums, IsOk());
      EXPECT_THAT(sums->local(), ::testing::Each(expected));
    });
  }
}

// In the order of the replicas.
TEST_P(CollectiveCases, Case95To97PacksChangeNoSum) {
  Each([&](Strategy& s) {
    const auto sums = [&](const CommunicationOptions& options) {
      return s.Run([&](Replica& replica) {
        std::vector<Leaf> values;
        for (const size_t count : {32, 8, 200, 1}) {
          values.push_back(
              Row(std::vector<float>(count, 0.1f * (replica.id() + 1))));
        }
        return replica.AllReduce(ReduceOp::kSum, std::move(values), options);
      });
    };
    const auto apart = sums({});
    ASSERT_THAT(apart, IsOk());
    for (const int64_t bytes : {0, 200, 100}) {
      EXPECT_EQ(*sums({bytes}), *apart) << bytes;
    }
    EXPECT_THAT(sums({-1}), StatusIs(kInvalid, HasSubstr("bytes_per_pack")));
  });
}

TEST_P(CollectiveCases, Case100ShapesThatDifferAreAnErrorOnAll) {
  if (one()) GTEST_SKIP() << "there is one replica";
  Each([&](Strategy& s) {
    const auto rows = Values(s, [](int id) {
      return id == 0 ? Row({1, 2}) : Row({1, 2, 3});
    });
    EXPECT_THAT(s.Reduce(ReduceOp::kSum, rows), StatusIs(kInvalid));
    // The next call works.
    EXPECT_THAT(
        s.Reduce(ReduceOp::kSum, Values(s, [](int) { return Number(1); })),
        IsOk());
  });
}

// The number of members of a group is known when it is made. Here worker 1 has
// one replica more than the others; Strategy::Join() would refuse it, as
// workers_test shows.
TEST_P(CollectiveCases, Case101GroupsOfDifferentSizesAreRefusedByAll) {
  const Shape shape = GetParam();
  if (shape.workers == 1) GTEST_SKIP() << "there is one worker";
  auto group = MakeLocalGroup(shape.workers, absl::Minutes(1));
  Fleet fleet;
  for (auto& member : group) {
    const int more = member->rank() == 1 ? 1 : 0;
    fleet.push_back(Strategy::Make({shape.kind, shape.replicas + more, {}},
                                   std::move(member))
                        .value());
  }
  Each(fleet, [](Strategy& s) {
    for (int call = 0; call < 2; ++call) {
      EXPECT_THAT(
          s.Reduce(ReduceOp::kSum, Values(s, [](int) { return Number(1); })),
          StatusIs(kInvalid, HasSubstr("the same number of replicas")));
    }
  });
}

// Nothing hangs where a worker does not come.
TEST_P(CollectiveCases, Case102AMissingWorkerIsNamed) {
  const Shape shape = GetParam();
  if (shape.workers == 1) GTEST_SKIP() << "there is one worker";
  const auto impatient = Make(shape, absl::Milliseconds(1));
  const auto late =
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 0"));
  EXPECT_THAT(impatient[1]->Reduce(ReduceOp::kSum, Number(1)), late);
  // All later calls fail with the same, also at the worker that was missing.
  for (const auto& worker : impatient) {
    EXPECT_THAT(worker->Reduce(ReduceOp::kSum, Number(1)), late);
  }
}

// TensorFlow's CommunicationOptions.timeout_seconds.
TEST_P(CollectiveCases, Case102ACallMayHaveATimeoutOfItsOwn) {
  const Shape shape = GetParam();
  if (shape.workers == 1) GTEST_SKIP() << "there is one worker";
  CommunicationOptions brief;
  brief.timeout = absl::Milliseconds(1);
  const auto late =
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 1ms"));
  const auto call = [&](const std::function<absl::Status(Replica&)>& work) {
    const auto patient = Make(shape, absl::Seconds(20));
    return patient[1]->Run([&](Replica& replica) { return work(replica); });
  };
  EXPECT_THAT(
      call([&](Replica& replica) {
        return replica.AllReduce(ReduceOp::kSum, Number(1), brief).status();
      }),
      late);
  EXPECT_THAT(call([&](Replica& replica) {
                return replica.AllGather(Row({1}), 0, brief).status();
              }),
              late);
  // The targets let each value of the batch travel alone, or together.
  for (const Target& target :
       {Target(EveryReplica{}), Target(Placement{{"cpu:0"}})}) {
    const PerReplica<Leaf> ones(
        std::vector<Leaf>(static_cast<size_t>(shape.replicas), Number(1)), 0);
    const std::vector<ReducePair> pairs = {{ones, EveryReplica{}},
                                           {ones, target}};
    EXPECT_THAT(
        call([&](Replica& replica) {
          return replica.Merge([&](Cross& cross) {
            return cross.BatchReduceTo(ReduceOp::kSum, pairs, brief).status();
          });
        }),
        late);
  }
  brief.timeout = absl::Seconds(-1);
  EXPECT_THAT(call([&](Replica& replica) {
                return replica.AllGather(Row({1}), 0, brief).status();
              }),
              StatusIs(kInvalid, HasSubstr("timeout is -1s")));
}

TEST_P(CollectiveCases, Case104TrainingMovesTowardsTheMinimum) {
  Each([&](Strategy& s) {
    const Variable w = s.Create(Named("w", Number(3), {}, {})).value();
    for (int step = 0; step < 10; ++step) {
      EXPECT_THAT(s.Run([&](Replica& replica) -> absl::Status {
        const float now = replica.Read(w)->Elements<float>()[0];
        return replica.Merge(
            [&](Cross& cross, const PerReplica<Value>& gradients) {
              const auto sum = cross.ReduceTo(ReduceOp::kSum, gradients, w);
              return cross.Update(
                  w,
                  [](Copy& copy, const Value& gradient) {
                    const float g = gradient.Elements<float>()[0];
                    return copy.AssignSub(Number(0.05f * g));
                  },
                  *sum);
            },
            Number(2 * (now - 1)));
      }),
                  IsOk());
    }
    const std::vector<float> copies = CopiesOf(s, w);
    EXPECT_NEAR(copies[0], 1 + 2 * std::pow(1 - 0.1 * n(), 10), 1e-4);
    EXPECT_THAT(copies, ::testing::Each(copies[0]));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, CollectiveCases,
                         ::testing::ValuesIn(AllShapes()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace lockstep::strategy
