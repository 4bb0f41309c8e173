// Cases that write variables, and case 104, for variables that lie on the
// servers of a job: PARAMETER_SERVER with two workers of one and of two
// replicas. The other cases see variables of a kParameterServer strategy that
// no job has taken.

#include <cmath>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "strategy/trained_by.h"
#include "tests/conformance/strategy/fake_servers.h"
#include "tests/conformance/strategy/fleet.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr float kInitial = 3;
constexpr float kRate = 0.05f;

// A worker with its strategy, and `w`, which the servers have.
struct Member {
  std::unique_ptr<Strategy> strategy;
  Variable w;
  std::unique_ptr<TrainedBy> trained;
};

class ServedCases : public CaseTest {
 protected:
  ServedCases() : servers_(GetParam().workers, kRate, {kInitial}) {
    for (int worker = 0; worker < GetParam().workers; ++worker) {
      auto strategy =
          Strategy::Make({GetParam().kind, GetParam().replicas, {}}).value();
      // Not the value of the servers, which the first pass brings.
      const Variable w =
          strategy
              ->Create(Named("w", Number(0), Synchronization::kOnWrite,
                             Aggregation::kSum))
              .value();
      auto trained =
          TrainedBy::Make(*strategy, {}, {w}, servers_.Join(worker)).value();
      members_.push_back({std::move(strategy), w, std::move(trained)});
    }
  }

  // All copies of `w` at a worker are the servers' first value.
  static void ExpectUntouched(Member& member) {
    EXPECT_THAT(CopiesOf(*member.strategy, member.w),
                ::testing::Each(kInitial));
    EXPECT_THAT(member.strategy->Read(member.w),
                IsOkAndHolds(Number(kInitial)));
  }
  static auto Refused() {
    return StatusIs(absl::StatusCode::kFailedPrecondition,
                    HasSubstr("lies on the job's servers"));
  }

  FakeServers servers_;
  std::vector<Member> members_;
};

TEST_P(ServedCases, Case75And91ReplicasWriteNoServedVariable) {
  for (Member& member : members_) {
    for (const Assignment how :
         {Assignment::kAssign, Assignment::kAdd, Assignment::kSubtract}) {
      EXPECT_THAT(member.strategy->Run([&](Replica& replica) {
        if (how == Assignment::kAssign) {
          return replica.Assign(member.w, Number(2));
        }
        return how == Assignment::kAdd ? replica.AssignAdd(member.w, Number(1))
                                       : replica.AssignSub(member.w, Number(1));
      }),
                  Refused());
    }
    ExpectUntouched(member);
  }
}

TEST_P(ServedCases, Case77And78NothingIsWrittenAcrossReplicas) {
  for (Member& member : members_) {
    EXPECT_THAT(member.strategy->Assign(member.w, Number(3)), Refused());
    EXPECT_THAT(member.strategy->Across([&](Cross& cross) {
      return cross.AssignAdd(member.w, Number(1));
    }),
                Refused());
    EXPECT_THAT(member.strategy->Across([&](Cross& cross) {
      return cross.Update(member.w,
                          [](Copy& copy) { return copy.Assign(Number(1)); });
    }),
                Refused());
    ExpectUntouched(member);
  }
}

TEST_P(ServedCases, Case61And92ReducedAndDistributedValuesAreNotWritten) {
  for (Member& member : members_) {
    const auto ones = Values(*member.strategy, [](int) { return Number(1); });
    EXPECT_THAT(member.strategy->Across([&](Cross& cross) -> absl::Status {
      const auto sum = cross.ReduceTo(ReduceOp::kSum, ones, member.w);
      if (!sum.ok()) return sum.status();
      return cross.Assign(member.w, *sum);
    }),
                Refused());
    EXPECT_THAT(member.strategy->Across([&](Cross& cross) {
      return cross.Update(
          member.w,
          [](Copy& copy, const Value& mine) { return copy.Assign(mine); },
          ones);
    }),
                Refused());
    ExpectUntouched(member);
  }
}

// What no job has taken is the process's own.
TEST_P(ServedCases, Case91OtherVariablesAreWritten) {
  for (Member& member : members_) {
    Strategy& s = *member.strategy;
    const Variable x =
        s.Create(Named("x", Number(10), Synchronization::kOnWrite,
                       Aggregation::kSum))
            .value();
    EXPECT_THAT(s.Run([&](Replica& replica) {
      return replica.AssignAdd(x, Number(1));
    }),
                IsOk());
    EXPECT_THAT(CopiesOf(s, x),
                ::testing::Each(10 + static_cast<float>(s.local_replicas())));
  }
}

// Replica i of all has i + 1 times the gradient of (w - 1)^2, so a gradient
// that is left out, counted twice or not divided is seen.
TEST_P(ServedCases, Case104TrainingMovesTowardsTheMinimum) {
  constexpr int kSteps = 10;
  std::vector<std::vector<float>> seen(members_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < members_.size(); ++i) {
    threads.emplace_back([&, i] {
      Member& member = members_[i];
      const int first = static_cast<int>(i) * GetParam().replicas;
      for (int step = 0; step < kSteps; ++step) {
        EXPECT_EQ(member.trained->served()->pass()->step, step);
        const auto pass = [&](Replica& replica, absl::Span<const Variable>)
            -> absl::StatusOr<LossAndGradients> {
          const float now = replica.Read(member.w)->Elements<float>()[0];
          const auto weight = static_cast<float>(first + replica.id() + 1);
          return LossAndGradients{Number((now - 1) * (now - 1)),
                                  {Leaf(Number(weight * 2 * (now - 1)))}};
        };
        EXPECT_THAT(member.strategy->Run([&](Replica& replica) {
          return member.trained->Minimize(replica, pass).status();
        }),
                    IsOk());
        seen[i].push_back(CopiesOf(*member.strategy, member.w)[0]);
        EXPECT_THAT(CopiesOf(*member.strategy, member.w),
                    ::testing::Each(seen[i].back()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(seen, ::testing::Each(seen[0]));
  const double shrinks = 1 - 2 * kRate * (n() + 1) / 2;
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(seen[0][static_cast<size_t>(step)],
                1 + (kInitial - 1) * std::pow(shrinks, step + 1), 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ServedCases,
                         ::testing::Values(Shape{Kind::kParameterServer, 2, 1},
                                           Shape{Kind::kParameterServer, 2, 2}),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace lockstep::strategy
