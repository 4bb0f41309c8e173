// Cases 95 to 104: collectives.

#include "tests/conformance/strategy/fleet.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class CollectiveCases : public CaseTest {};

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

// Cases 98 and 102: nothing hangs where a worker does not come.
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
    EXPECT_LT(std::abs(copies[0] - 1), 2);
    EXPECT_THAT(copies, ::testing::Each(copies[0]));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, CollectiveCases,
                         ::testing::ValuesIn(AllShapes()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace lockstep::strategy
