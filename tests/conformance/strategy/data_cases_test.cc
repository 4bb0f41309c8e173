// Cases 26 and 30 to 39: replicas and data. tests/unit/strategy/input has 27 to
// 29 and 36, tests/unit/strategy 37.

#include "tests/conformance/strategy/fleet.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

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
};

TEST_P(DataCases, Case26ReplicasOfAllWorkersAreCounted) {
  Each([&](Strategy& s) { EXPECT_EQ(s.replicas(), all()); });
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
    EXPECT_EQ(ReadAll(repeated).size(), 12u);
  });
}

TEST_P(DataCases, Case33And35AFunctionSharesTheDataItself) {
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

TEST_P(DataCases, Case34EachReplicaComputesItsPiece) {
  Each([&](Strategy& s) {
    auto data = s.Distribute(Dataset::Range(2 * all()).Batch(all())).value();
    int64_t sum = 0;
    for (auto step = data.Next(); step.ok(); step = data.Next()) {
      const auto doubled = s.Run(
          [](Replica&, const Element& mine) {
            return 2 * mine[0].Elements<int64_t>().at(0);
          },
          *step);
      for (const int64_t each : doubled->local()) sum += each;
    }
    const auto total = s.Reduce(
        ReduceOp::kSum, Value::Of<int64_t>(ElementType::kInt64, {}, {sum}));
    const int64_t count = 2 * all();
    EXPECT_EQ((s.workers() == 1 ? sum : total->Elements<int64_t>()[0]),
              count * (count - 1));
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

INSTANTIATE_TEST_SUITE_P(Shapes, DataCases, ::testing::ValuesIn(AllShapes()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace lockstep::strategy
