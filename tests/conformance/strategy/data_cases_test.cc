// Cases 26 to 39: replicas and data.

#include <algorithm>
#include <numeric>

#include "tests/conformance/strategy/fleet.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Rows = std::vector<std::vector<int64_t>>;

class DataCases : public CaseTest {
 protected:
  static InputOptions With(AutoShardPolicy policy) {
    InputOptions options;
    options.auto_shard = policy;
    return options;
  }
  // All steps to the end, in which each piece is a row.
  static Rows ReadAll(DistributedDataset& data) {
    Rows rows;
    for (auto step = data.Next(); step.ok(); step = data.Next()) {
      for (auto& row : NumbersOf(*step)) rows.push_back(std::move(row));
    }
    return rows;
  }
  // Piece `number` of the numbers from `from` to below `to`, cut into pieces of
  // `size`; it may be short or empty.
  static std::vector<int64_t> Piece(int64_t number, int64_t size, int64_t from,
                                    int64_t to) {
    std::vector<int64_t> piece;
    for (int64_t i = from + number * size;
         i < std::min(to, from + (number + 1) * size); ++i) {
      piece.push_back(i);
    }
    return piece;
  }
  // The size of the equal pieces of a batch, of which only the last are short.
  int64_t PieceOf(int64_t batch) const { return (batch + all() - 1) / all(); }
};

TEST_P(DataCases, Case26ReplicasOfAllWorkersAreCounted) {
  Each([&](Strategy& s) { EXPECT_EQ(s.replicas(), all()); });
}

// Each worker reads all the data, in batches of 7 and of 10.
TEST_P(DataCases, Case27And28PiecesOfAStepAddUpToABatch) {
  for (const int64_t batch : {7, 10}) {
    Each([&](Strategy& s) {
      auto data = s.Distribute(Dataset::Range(2 * batch).Batch(batch),
                               With(AutoShardPolicy::kOff))
                      .value();
      const Rows rows = ReadAll(data);
      std::vector<int64_t> sizes, numbers;
      for (const auto& row : rows) {
        sizes.push_back(static_cast<int64_t>(row.size()));
        numbers.insert(numbers.end(), row.begin(), row.end());
      }
      std::vector<int64_t> all_numbers(static_cast<size_t>(2 * batch));
      std::iota(all_numbers.begin(), all_numbers.end(), 0);
      EXPECT_EQ(numbers, all_numbers);
      ASSERT_EQ(sizes.size(), static_cast<size_t>(2 * all()));
      const auto local = static_cast<size_t>(s.local_replicas());
      for (auto step = sizes.begin(); step != sizes.end();
           step += static_cast<std::ptrdiff_t>(local)) {
        const int64_t mine = std::accumulate(
            step, step + static_cast<std::ptrdiff_t>(local), int64_t{0});
        const auto total = s.Reduce(
            ReduceOp::kSum,
            PerReplica<Value>(
                std::vector<Value>(
                    local, Value::Of<int64_t>(ElementType::kInt64, {}, {mine})),
                s.first_replica()));
        ASSERT_THAT(total, IsOk());
        EXPECT_EQ(total->Elements<int64_t>()[0], batch * s.local_replicas());
      }
      sizes.resize(static_cast<size_t>(all()));
      if (batch == 7 && s.workers() == 2 && s.local_replicas() == 2) {
        const Rows expected = {{2, 2, 2, 1}, {2, 1, 2, 2}};
        EXPECT_EQ(sizes, expected[static_cast<size_t>(s.worker())]);
      }
      if (batch == 10 && s.workers() == 3 && s.local_replicas() == 1) {
        const Rows expected = {{4, 3, 3}, {3, 3, 4}, {3, 4, 3}};
        EXPECT_EQ(sizes, expected[static_cast<size_t>(s.worker())]);
      }
    });
  }
}

TEST_P(DataCases, Case29ReplicasDivideTheGlobalBatch) {
  Each([&](Strategy& s) {
    EXPECT_THAT(s.DistributeFrom([&](const InputContext& context)
                                     -> absl::StatusOr<Dataset> {
      const auto ten = context.PerReplicaBatchSize(10);
      if (10 % all() == 0) {
        EXPECT_THAT(ten, IsOkAndHolds(10 / all()));
      } else {
        EXPECT_THAT(ten, StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("multiple of")));
      }
      EXPECT_THAT(context.PerReplicaBatchSize(5 * all()), IsOkAndHolds(5));
      return Dataset::Range(1).Batch(1);
    }),
                IsOk());
  });
}

TEST_P(DataCases, Case30And31WorkersShareOrRepeatTheData) {
  Each([&](Strategy& s) {
    const Dataset numbers = Dataset::Range(12).Batch(all());
    auto shared = s.Distribute(numbers, With(AutoShardPolicy::kAuto)).value();
    Rows expected;
    for (int64_t first = 0; first < 12; first += all()) {
      // Pieces w, w + W, ... of one example each.
      for (int64_t p = s.worker(); p < all(); p += s.workers()) {
        expected.push_back({first + p});
      }
    }
    EXPECT_EQ(ReadAll(shared), expected);
    auto repeated = s.Distribute(numbers, With(AutoShardPolicy::kOff)).value();
    Rows everything;
    for (int64_t i = 0; i < 12; ++i) everything.push_back({i});
    EXPECT_EQ(ReadAll(repeated), everything);
  });
}

// The last batch has 6 examples.
TEST_P(DataCases, Case32AShortBatchIsDividedAnew) {
  Each([&](Strategy& s) {
    auto data =
        s.Distribute(Dataset::Range(14).Batch(8), With(AutoShardPolicy::kData))
            .value();
    EXPECT_THAT(data.Next(), IsOk());
    const auto second = data.Next();
    ASSERT_THAT(second, IsOk());
    Rows expected;
    for (int64_t p = s.worker(); p < all(); p += s.workers()) {
      expected.push_back(Piece(p, PieceOf(6), 8, 14));
    }
    EXPECT_EQ(NumbersOf(*second), expected);
    if (all() == 2 && s.workers() == 2) {
      EXPECT_THAT(NumbersOf(*second)[0], s.worker() == 0
                                             ? ElementsAre(8, 9, 10)
                                             : ElementsAre(11, 12, 13));
    }
    EXPECT_THAT(data.Next(), StatusIs(absl::StatusCode::kOutOfRange));
  });
}

// The second step of two workers of one replica is [8..11] and [12,13].
TEST_P(DataCases, Case33AFunctionMayShareBatchesOfWhichTheLastIsShort) {
  Each([&](Strategy& s) {
    auto data = s.DistributeFrom([](const InputContext& context)
                                     -> absl::StatusOr<Dataset> {
                   return Dataset::Range(14).Batch(4).Shard(
                       context.num_input_pipelines, context.input_pipeline_id);
                 }).value();
    // Batches w, w + W, ... of 4: each replica takes one in turn.
    Rows expected;
    for (int64_t b = s.worker(); b < 4; b += s.workers()) {
      expected.push_back(Piece(b, 4, 0, 14));
    }
    const int64_t most = (4 + s.workers() - 1) / s.workers();
    const int64_t local = s.local_replicas();
    const int64_t steps = (most + local - 1) / local;
    expected.resize(static_cast<size_t>(steps * local));
    EXPECT_EQ(ReadAll(data), expected);
    if (s.workers() == 2 && local == 1) {
      EXPECT_EQ(expected[1], s.worker() == 0
                                 ? (std::vector<int64_t>{8, 9, 10, 11})
                                 : (std::vector<int64_t>{12, 13}));
    }
  });
}

TEST_P(DataCases, Case35AFunctionSharesTheDataItself) {
  Each([&](Strategy& s) {
    auto data = s.DistributeFrom([&](const InputContext& context)
                                     -> absl::StatusOr<Dataset> {
                   EXPECT_EQ(context.num_input_pipelines, s.workers());
                   EXPECT_EQ(context.input_pipeline_id, s.worker());
                   EXPECT_EQ(context.num_replicas_in_sync, all());
                   return Dataset::Range(100).Repeat().Batch(5).Shard(
                       context.num_input_pipelines, context.input_pipeline_id);
                 }).value();
    const auto step = data.Next();
    ASSERT_THAT(step, IsOk());
    const int64_t first = 5 * s.worker();
    EXPECT_EQ(NumbersOf(*step)[0],
              (std::vector<int64_t>{first, first + 1, first + 2, first + 3,
                                    first + 4}));
  });
}

// With one worker of two replicas they compute 0 and 2, then 4 and 6.
TEST_P(DataCases, Case34EachReplicaComputesItsPiece) {
  Each([&](Strategy& s) {
    auto data = s.Distribute(Dataset::Range(2 * all()).Batch(all())).value();
    std::vector<int64_t> computed;
    for (auto step = data.Next(); step.ok(); step = data.Next()) {
      const auto doubled = s.Run(
          [](Replica&, const Element& mine) {
            return 2 * mine[0].Elements<int64_t>().at(0);
          },
          *step);
      ASSERT_THAT(doubled, IsOk());
      computed.insert(computed.end(), doubled->local().begin(),
                      doubled->local().end());
    }
    std::vector<int64_t> expected;
    for (const int64_t first : {0, all()}) {
      for (int64_t p = s.worker(); p < all(); p += s.workers()) {
        expected.push_back(2 * (first + p));
      }
    }
    EXPECT_EQ(computed, expected);
  });
}

// The data set does not tell the size of its batches.
TEST_P(DataCases, Case36ABatchOfUnknownSizeIsCutIntoEqualPieces) {
  Each([&](Strategy& s) {
    const Dataset unknown = Dataset::Range(4).Batch(4).MapBatches(
        [](Element batch) -> absl::StatusOr<Element> { return batch; });
    auto data = s.Distribute(unknown, With(AutoShardPolicy::kOff)).value();
    Rows expected;
    for (int64_t p = 0; p < all(); ++p) {
      expected.push_back(Piece(p, PieceOf(4), 0, 4));
    }
    EXPECT_EQ(ReadAll(data), expected);
    if (all() == 3) {
      EXPECT_EQ(expected, (Rows{{0, 1}, {2, 3}, {}}));
    }
  });
}

TEST_P(DataCases, Case37AnExampleThatIsLeftOverIsTheLastStep) {
  Each([&](Strategy& s) {
    const auto batches = [&](bool drop_remainder) {
      return s
          .Distribute(
              Dataset::Range(4 * all() + 1).Batch(2 * all(), drop_remainder))
          .value();
    };
    auto data = batches(false);
    EXPECT_THAT(data.Next(), IsOk());
    EXPECT_THAT(data.Next(), IsOk());
    const auto last = data.Next();
    ASSERT_THAT(last, IsOk());
    Rows expected(static_cast<size_t>(s.local_replicas()));
    if (s.worker() == 0) expected[0] = {4 * all()};
    EXPECT_EQ(NumbersOf(*last), expected);
    EXPECT_THAT(data.Next(), StatusIs(absl::StatusCode::kOutOfRange));
    auto dropped = batches(true);
    EXPECT_THAT(dropped.Next(), IsOk());
    EXPECT_THAT(dropped.Next(), IsOk());
    EXPECT_THAT(dropped.Next(), StatusIs(absl::StatusCode::kOutOfRange));
  });
}

TEST_P(DataCases, Case38FewerFilesThanWorkers) {
  Each([&](Strategy& s) {
    auto data = s.Distribute(
        Dataset::FromFiles(
            {"one"},
            [](const std::string&) { return Dataset::Range(8).Open(); })
            .Batch(all()),
        With(AutoShardPolicy::kFile));
    ASSERT_THAT(data, IsOk());
    if (s.workers() == 1) {
      EXPECT_THAT(data->Next(), IsOk());
    } else {
      EXPECT_THAT(data->Next(), StatusIs(absl::StatusCode::kInvalidArgument));
    }
  });
}

TEST_P(DataCases, Case39AnEndedDataSetStaysEndedUntilItRestarts) {
  Each([&](Strategy& s) {
    auto data = s.Distribute(Dataset::Range(2 * all()).Batch(all())).value();
    const Rows once = ReadAll(data);
    EXPECT_EQ(once.size(), 2u * static_cast<size_t>(s.local_replicas()));
    EXPECT_THAT(data.Next(), StatusIs(absl::StatusCode::kOutOfRange));
    data.Restart();
    EXPECT_EQ(ReadAll(data), once);
  });
}

// Workers end together, whatever the data of each.
TEST_P(DataCases, WorkersWithoutDataGetBatchesWithoutExamples) {
  Each([&](Strategy& s) {
    auto data = s.DistributeFrom([](const InputContext& context)
                                     -> absl::StatusOr<Dataset> {
                   return Dataset::Range(context.input_pipeline_id == 0 ? 6 : 2)
                       .Batch(1);
                 }).value();
    size_t steps = 0;
    Rows last;
    for (auto step = data.Next(); step.ok(); step = data.Next()) {
      ++steps;
      last = NumbersOf(*step);
    }
    const int local = s.local_replicas();
    EXPECT_EQ(steps, static_cast<size_t>((6 + local - 1) / local));
    if (s.worker() > 0) {
      EXPECT_THAT(last, ::testing::Each(::testing::IsEmpty()));
    }
  });
}

// The elements are scalars, of which there is no batch of none; worker 0 has
// one more for each of its replicas.
TEST_P(DataCases, WorkersAgreeThatAnElementIsMissing) {
  Each([&](Strategy& s) {
    const int64_t each = s.local_replicas();
    auto data = s.DistributeFrom([each](const InputContext& context)
                                     -> absl::StatusOr<Dataset> {
                   const int64_t steps = context.input_pipeline_id == 0 ? 3 : 2;
                   return Dataset::FromFiles(
                       {"numbers"}, [steps, each](const std::string&) {
                         return Dataset::Range(steps * each).Open();
                       });
                 }).value();
    EXPECT_THAT(data.Next(), IsOk());
    EXPECT_THAT(data.Next(), IsOk());
    if (s.workers() == 1) {
      EXPECT_THAT(data.Next(), IsOk());
      EXPECT_THAT(data.Next(), StatusIs(absl::StatusCode::kOutOfRange));
    } else {
      EXPECT_THAT(data.Next(), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("batch the data set")));
    }
  });
}

// Only the first worker's file has numbers, so the others have not seen their
// type and shape.
TEST_P(DataCases, WorkersWithEmptyFilesLearnTheShapeFromTheOthers) {
  Each([&](Strategy& s) {
    std::vector<std::string> names;
    for (int w = 0; w < s.workers(); ++w) names.push_back(w == 0 ? "two" : "");
    auto data = s.Distribute(
        Dataset::FromFiles(names,
                           [](const std::string& name) {
                             return Dataset::Range(name.empty() ? 0 : 2).Open();
                           })
            .Batch(1),
        With(AutoShardPolicy::kFile));
    ASSERT_THAT(data, IsOk());
    const Rows rows = ReadAll(*data);
    EXPECT_THAT(data->Next(), StatusIs(absl::StatusCode::kOutOfRange));
    EXPECT_EQ(rows.size(), static_cast<size_t>(2 * all()));
    std::vector<int64_t> numbers;
    for (const auto& row : rows) {
      numbers.insert(numbers.end(), row.begin(), row.end());
    }
    EXPECT_EQ(numbers, s.worker() == 0 ? (std::vector<int64_t>{0, 1})
                                       : std::vector<int64_t>());
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, DataCases, ::testing::ValuesIn(AllShapes()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace lockstep::strategy
