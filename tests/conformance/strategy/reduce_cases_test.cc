// Cases 42 to 65: reduce, run, gather.

#include <utility>
#include <variant>

#include "tests/conformance/strategy/fleet.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class ReduceCases : public CaseTest {};

Value MatrixOf(std::vector<int64_t> shape, float number) {
  size_t count = 1;
  for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
  return Value::Of(ElementType::kFloat32, std::move(shape),
                   std::vector<float>(count, number));
}

TEST_P(ReduceCases, Case42To44ReduceWithAndWithoutAnAxis) {
  CaseTest::Each([&](Strategy& s) {
    const auto rows = Values(s, [](int id) {
      const float first = static_cast<float>(4 * id);
      return Row({first, first + 1, first + 2, first + 3});
    });
    const float offset = 4 * n() * (n() - 1) / 2;
    EXPECT_THAT(s.Reduce(ReduceOp::kSum, rows),
                IsOkAndHolds(Row({offset, offset + n(), offset + 2 * n(),
                                  offset + 3 * n()})));
    const float count = 4 * n();
    EXPECT_THAT(s.Reduce(ReduceOp::kSum, rows, {0}),
                IsOkAndHolds(Number(count * (count - 1) / 2)));
    const auto uneven = Values(s, [](int id) {
      return id == 0 ? Row({0, 1, 2, 3}) : Row({4, 5});
    });
    const float examples = 4 + 2 * (n() - 1);
    EXPECT_THAT(s.Reduce(ReduceOp::kMean, uneven, {0}),
                IsOkAndHolds(Number((6 + 9 * (n() - 1)) / examples)));
    if (!one()) {
      EXPECT_THAT(s.Reduce(ReduceOp::kMean, uneven), StatusIs(kInvalid));
    }
  });
}

TEST_P(ReduceCases, Case45TheSameRowOnEachReplica) {
  CaseTest::Each([&](Strategy& s) {
    const auto rows = Values(s, [](int) { return Row({1, 2}); });
    EXPECT_THAT(s.Reduce(ReduceOp::kMean, rows, {0}),
                IsOkAndHolds(Number(1.5)));
    EXPECT_THAT(s.Reduce(ReduceOp::kSum, rows, {0}),
                IsOkAndHolds(Number(3 * n())));
  });
}

TEST_P(ReduceCases, Case46To48ValuesFromAFunction) {
  CaseTest::Each([&](Strategy& s) {
    const auto ones =
        s.DistributeValues([](const ValueContext&) { return 1.0f; });
    EXPECT_THAT(ones->local(), ::testing::Each(1.0f));
    const auto ids = s.DistributeValues([&](const ValueContext& context) {
      EXPECT_EQ(context.num_replicas, all());
      return context.replica_id;
    });
    for (int r = 0; r < s.local_replicas(); ++r) {
      EXPECT_EQ(ids->At(static_cast<size_t>(r)), s.first_replica() + r);
    }
  });
}

TEST_P(ReduceCases, Case49And50RunDoublesPlainAndWrappedValues) {
  CaseTest::Each([&](Strategy& s) {
    const auto twice = [](Replica&, float x) { return 2 * x; };
    EXPECT_THAT(s.Run(twice, 3.0f)->local(), ::testing::Each(6.0f));
    const auto counts = s.DistributeValues([](const ValueContext& context) {
      return static_cast<float>(context.num_replicas);
    });
    EXPECT_THAT(s.Run(twice, *counts)->local(), ::testing::Each(2 * n()));
  });
}

TEST_P(ReduceCases, Case51AllReduceOfTheReplicasNumbers) {
  CaseTest::Each([&](Strategy& s) {
    const float sum = n() * (n() - 1) / 2;
    const auto sums = s.Run([](Replica& replica) {
      return replica.AllReduce(ReduceOp::kSum,
                               Number(static_cast<float>(replica.id())));
    });
    ASSERT_THAT(sums, IsOk());
    EXPECT_THAT(sums->local(), ::testing::Each(Number(sum)));
    EXPECT_THAT(
        s.Reduce(
            ReduceOp::kSum,
            Values(s, [](int id) { return Number(static_cast<float>(id)); })),
        IsOkAndHolds(Number(sum)));
  });
}

TEST_P(ReduceCases, Case52To55Gather) {
  CaseTest::Each([&](Strategy& s) {
    const auto shape_along = [&](int64_t axis) {
      const auto boxes = Values(s, [](int id) {
        return MatrixOf({1, 2, 3}, static_cast<float>(id));
      });
      return std::get<Value>(s.Gather(boxes, axis).value()).shape();
    };
    EXPECT_EQ(shape_along(0), (std::vector<int64_t>{all(), 2, 3}));
    EXPECT_EQ(shape_along(1), (std::vector<int64_t>{1, 2 * all(), 3}));
    EXPECT_EQ(shape_along(2), (std::vector<int64_t>{1, 2, 3 * all()}));
    std::vector<float> numbers;
    for (int id = 0; id < all(); ++id) {
      const auto number = static_cast<float>(10 * id);
      numbers.insert(numbers.end(), {number + 1, number + 2});
    }
    const auto columns = Values(s, [](int id) {
      const auto number = static_cast<float>(10 * id);
      return Value::Of<float>(ElementType::kFloat32, {2, 1},
                              {number + 1, number + 2});
    });
    EXPECT_THAT(s.Gather(columns, 0),
                IsOkAndHolds(Leaf(Value::Of(ElementType::kFloat32,
                                            {2 * all(), 1}, numbers))));
    // Beside each other: first the upper number of every replica.
    std::vector<float> beside;
    for (const float more : {1, 2}) {
      for (int id = 0; id < all(); ++id) {
        beside.push_back(static_cast<float>(10 * id) + more);
      }
    }
    EXPECT_THAT(s.Gather(columns, 1),
                IsOkAndHolds(Leaf(
                    Value::Of(ElementType::kFloat32, {2, all()}, beside))));
    const auto uneven = Values(s, [](int id) {
      return MatrixOf({id == 0 ? 1 : 2, 1}, 0);
    });
    EXPECT_EQ(std::get<Value>(s.Gather(uneven, 0).value()).shape(),
              (std::vector<int64_t>{2 * all() - 1, 1}));
    EXPECT_THAT(s.Gather(uneven, 2), StatusIs(kInvalid));
    if (one()) return;
    EXPECT_THAT(s.Gather(uneven, 1), StatusIs(kInvalid));
    const auto ranks = Values(s, [](int id) {
      return id == 0 ? MatrixOf({1}, 0) : MatrixOf({1, 1}, 0);
    });
    EXPECT_THAT(s.Gather(ranks, 0), StatusIs(kInvalid));
  });
}

TEST_P(ReduceCases, Case56AllGatherReachesEachReplica) {
  CaseTest::Each([&](Strategy& s) {
    std::vector<float> expected;
    for (int i = 0; i < all(); ++i) {
      expected.insert(expected.end(), {1, 2, 3});
    }
    const auto rows = s.Run([](Replica& replica) {
      return replica.AllGather(Row({1, 2, 3}), 0);
    });
    ASSERT_THAT(rows, IsOk());
    EXPECT_THAT(rows->local(), ::testing::Each(Row(expected)));
  });
}

// TensorFlow 2.21 makes slices dense, where the list's documents refuse them.
TEST_P(ReduceCases, Case55SlicesAreGatheredAsDenseValues) {
  CaseTest::Each([&](Strategy& s) {
    std::vector<Slices> rows;
    for (int r = 0; r < s.local_replicas(); ++r) {
      const auto id = static_cast<float>(s.first_replica() + r);
      rows.push_back(
          {{1}, MatrixOf({1, 1}, id + 1), std::vector<int64_t>{2, 1}});
    }
    const PerReplica<Slices> each(std::move(rows), s.first_replica());
    const auto joined = s.Gather(each, 0);
    ASSERT_THAT(joined, IsOk());
    if (one()) {  // nothing is joined
      EXPECT_EQ(*joined, Leaf(each.At(0)));
      return;
    }
    std::vector<float> expected;
    for (int id = 0; id < all(); ++id) {
      expected.insert(expected.end(), {0, static_cast<float>(id + 1)});
    }
    EXPECT_EQ(*joined,
              Leaf(Value::Of(ElementType::kFloat32, {2 * all(), 1}, expected)));
  });
}

// With two replicas the values are 1, [39, 2] and 3, [3, 41].
TEST_P(ReduceCases, Case57AllReduceOfSeveralValues) {
  CaseTest::Each([&](Strategy& s) {
    const float number = n() * n();
    const float first = 39 * n() - 18 * n() * (n() - 1);
    const float second = 2 * n() + 39 * n() * (n() - 1) / 2;
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      const float count = op == ReduceOp::kSum ? 1 : n();
      const auto results = s.Run([&](Replica& replica) {
        const auto id = static_cast<float>(replica.id());
        return replica.AllReduce(
            op, std::vector<Leaf>{Number(1 + 2 * id),
                                  Row({39 - 36 * id, 2 + 39 * id})});
      });
      ASSERT_THAT(results, IsOk());
      const std::vector<Leaf> expected = {Number(number / count),
                                          Row({first / count, second / count})};
      EXPECT_THAT(results->local(), ::testing::Each(expected));
    }
  });
}

TEST_P(ReduceCases, Case58AllReduceOfAList) {
  CaseTest::Each([&](Strategy& s) {
    const auto results = s.Run([](Replica& replica) {
      return replica.AllReduce(ReduceOp::kSum,
                               std::vector<Leaf>{Number(1), Number(2)});
    });
    ASSERT_THAT(results, IsOk());
    const std::vector<Leaf> expected = {Number(n()), Number(2 * n())};
    EXPECT_THAT(results->local(), ::testing::Each(expected));
  });
}

TEST_P(ReduceCases, Case59MergeSumsWhatTheReplicasOfAWorkerBring) {
  CaseTest::Each([&](Strategy& s) {
    const auto results = s.Run(
        [](Replica& replica, float x) -> absl::StatusOr<float> {
          const float v = x + static_cast<float>(replica.local());
          const auto sum = replica.Merge(
              [](Cross&, const PerReplica<float>& all) {
                float total = 0;
                for (const float each : all.local()) total += each;
                return total;
              },
              v);
          if (!sum.ok()) return sum.status();
          return *sum + v;
        },
        3.0f);
    ASSERT_THAT(results, IsOk());
    const auto local = static_cast<float>(s.local_replicas());
    const float sum = 3 * local + local * (local - 1) / 2;
    EXPECT_EQ(results->At(0), sum + 3);
    EXPECT_EQ(results->local().back(), sum + 3 + local - 1);
  });
}

TEST_P(ReduceCases, Case60StructuresOfARunGoIntoTheNext) {
  struct Made {
    float a;
    float b;
  };
  CaseTest::Each([&](Strategy& s) {
    const auto made = s.Run([](Replica& replica) {
      const auto x = static_cast<float>(replica.id() + 1);
      return Made{2 * x, x * x};
    });
    const auto sums =
        s.Run([](Replica&, const Made& m) { return m.a + 2 * m.b + 2; }, *made);
    for (int r = 0; r < s.local_replicas(); ++r) {
      const auto x = static_cast<float>(s.first_replica() + r + 1);
      EXPECT_EQ(sums->At(static_cast<size_t>(r)), 2 * x + 2 * x * x + 2);
    }
  });
}

TEST_P(ReduceCases, Case61AReducedValueIsAssigned) {
  CaseTest::Each([&](Strategy& s) {
    const Variable v = s.Create(Named("v", Number(0))).value();
    const auto ones = Values(s, [](int) { return Number(1); });
    EXPECT_THAT(s.Across([&](Cross& cross) -> absl::Status {
      const auto reduced = cross.ReduceTo(ReduceOp::kSum, ones, v);
      if (!reduced.ok()) return reduced.status();
      return cross.Assign(v, *reduced);
    }),
                IsOk());
    EXPECT_THAT(CopiesOf(s, v), ::testing::Each(n()));
  });
}

// In a batch a plain value is one of Cross::AllReduce(), because the pairs of
// BatchReduceTo() have a value for each replica.
TEST_P(ReduceCases, Case62APlainValueIsReducedOverWorkers) {
  CaseTest::Each([&](Strategy& s) {
    const Value expected = Number(static_cast<float>(s.workers()));
    const auto sum = s.Reduce(ReduceOp::kSum, Number(1));
    const auto reduced = s.Across([](Cross& cross) {
      return cross.ReduceTo(ReduceOp::kSum, Number(1), EveryReplica{});
    });
    const Distributed plain = ToDistributed(Number(1));
    const auto batch = s.Across([&](Cross& cross) {
      return cross.AllReduce(ReduceOp::kSum, {plain, plain});
    });
    if (s.workers() == 1 && !one()) {
      EXPECT_THAT(sum, StatusIs(kInvalid));
      EXPECT_THAT(reduced, StatusIs(kInvalid));
      EXPECT_THAT(batch, StatusIs(kInvalid));
      return;
    }
    EXPECT_THAT(sum, IsOkAndHolds(expected));
    ASSERT_THAT(reduced, IsOk());
    EXPECT_EQ(reduced->placement(), s.worker_devices());
    EXPECT_EQ(reduced->At(0), expected);
    EXPECT_THAT(batch, IsOkAndHolds(ElementsAre(expected, expected)));
  });
}

// Replica i has i + 1 and 2 (i + 1). A destination that differs from the others
// lets each value travel alone.
TEST_P(ReduceCases, Case62ABatchKeepsTheOrderOfItsPairs) {
  CaseTest::Each([&](Strategy& s) {
    const auto times = [&](float factor) {
      std::vector<Leaf> local;
      for (int r = 0; r < s.local_replicas(); ++r) {
        local.emplace_back(
            Number(factor * static_cast<float>(s.first_replica() + r + 1)));
      }
      return PerReplica<Leaf>(std::move(local), s.first_replica());
    };
    const Placement first{{s.worker_devices().devices[0]}};
    const float sum = n() * (n() + 1) / 2;
    for (const Target& target : {Target(EveryReplica{}), Target(first)}) {
      const std::vector<ReducePair> pairs = {{times(1), EveryReplica{}},
                                             {times(2), target}};
      const auto batch = s.Across([&](Cross& cross) {
        return cross.BatchReduceTo(ReduceOp::kSum, pairs);
      });
      ASSERT_THAT(batch, IsOk());
      ASSERT_EQ(batch->size(), 2u);
      EXPECT_EQ(batch->at(0).At(0), Leaf(Number(sum)));
      EXPECT_EQ(batch->at(1).At(0), Leaf(Number(2 * sum)));
      EXPECT_EQ(batch->at(0).placement(), s.worker_devices());
      EXPECT_EQ(batch->at(1).placement(),
                std::holds_alternative<Placement>(target) ? first
                                                          : s.worker_devices());
    }
  });
}

// The first replica has the row {1: [1, 2]}, the others have {1: [3, 4],
// 3: [5, 6]}. TensorFlow's documents add up equal rows, which ToDense() does.
TEST_P(ReduceCases, Case63SparseValuesAreJoined) {
  CaseTest::Each([&](Strategy& s) {
    const auto matrix = [](int64_t rows, const std::vector<float>& numbers) {
      return Value::Of(ElementType::kFloat32, {rows, 2}, numbers);
    };
    const std::vector<int64_t> shape = {5, 2};
    std::vector<Slices> mine;
    for (int id = s.first_replica();
         id < s.first_replica() + s.local_replicas(); ++id) {
      mine.push_back(id == 0 ? Slices{{1}, matrix(1, {1, 2}), shape}
                             : Slices{{1, 3}, matrix(2, {3, 4, 5, 6}), shape});
    }
    const PerReplica<Slices> each(std::move(mine), s.first_replica());
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      const float count = op == ReduceOp::kSum ? 1 : n();
      std::vector<int64_t> indices = {1};
      std::vector<float> rows = {1 / count, 2 / count};
      std::vector<float> dense(10, 0);
      dense[2] = rows[0];
      dense[3] = rows[1];
      for (int id = 1; id < all(); ++id) {
        indices.insert(indices.end(), {1, 3});
        const std::vector<float> more = {3 / count, 4 / count, 5 / count,
                                         6 / count};
        rows.insert(rows.end(), more.begin(), more.end());
        for (size_t i = 0; i < 2; ++i) {
          dense[2 + i] += more[i];
          dense[6 + i] += more[2 + i];
        }
      }
      const auto joined = s.Across([&](Cross& cross) {
        return cross.ReduceTo(op, each, EveryReplica{});
      });
      ASSERT_THAT(joined, IsOk());
      EXPECT_EQ(joined->At(0),
                (Slices{indices, matrix(2 * all() - 1, rows), shape}));
      EXPECT_THAT(s.Reduce(op, each), IsOkAndHolds(matrix(5, dense)));
    }
  });
}

TEST_P(ReduceCases, Case64And65NamesOfOperationsAndMirroredMeans) {
  EXPECT_THAT(ParseReduceOp("mean"), IsOkAndHolds(ReduceOp::kMean));
  EXPECT_THAT(ParseReduceOp("SUM"), IsOkAndHolds(ReduceOp::kSum));
  CaseTest::Each([&](Strategy& s) {
    const Mirrored<Value> same(Number(3));
    EXPECT_THAT(s.Reduce(ReduceOp::kMean, same), IsOkAndHolds(Number(3)));
    if (!one()) {
      EXPECT_THAT(s.Reduce(ReduceOp::kSum, same), StatusIs(kInvalid));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ReduceCases, ::testing::ValuesIn(AllShapes()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace lockstep::strategy
