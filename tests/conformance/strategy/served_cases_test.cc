// Cases that write variables, and case 104, for variables that lie on the
// servers of a job: PARAMETER_SERVER with two workers of one and of two
// replicas, once with a group of the workers and once without. The other cases
// see variables of a kParameterServer strategy that no job has taken.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
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
  Strategy* strategy;
  Variable w;
  std::unique_ptr<TrainedBy> trained;
};

class ServedCases : public CaseTest {
 protected:
  ServedCases() : servers_(GetParam().workers, kRate, {kInitial}) {
    members_.resize(fleet_.size());
    EachWorker([&](size_t worker) {
      Strategy& strategy = *fleet_[worker];
      // Not the value of the servers, which the first pass brings.
      const Variable w =
          strategy
              .Create(Named("w", Number(0), Synchronization::kOnWrite,
                            Aggregation::kSum))
              .value();
      auto trained = TrainedBy::Make(strategy, {}, {w},
                                     servers_.Join(static_cast<int>(worker)))
                         .value();
      members_[worker] = Member{&strategy, w, std::move(trained)};
    });
  }

  // Calls work(number) for all workers at the same time.
  void EachWorker(const std::function<void(size_t)>& work) const {
    std::vector<std::thread> threads;
    for (size_t worker = 0; worker < fleet_.size(); ++worker) {
      threads.emplace_back(work, worker);
    }
    for (std::thread& thread : threads) thread.join();
  }
  void EachMember(const std::function<void(Member&)>& work) {
    EachWorker([&](size_t worker) { work(*members_[worker]); });
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
  std::vector<std::optional<Member>> members_;
};

TEST_P(ServedCases, Case75And91ReplicasWriteNoServedVariable) {
  EachMember([&](Member& member) {
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
  });
}

TEST_P(ServedCases, Case77And78NothingIsWrittenAcrossReplicas) {
  EachMember([&](Member& member) {
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
  });
}

TEST_P(ServedCases, Case61And92ReducedAndDistributedValuesAreNotWritten) {
  EachMember([&](Member& member) {
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
  });
}

// What no job has taken is the process's own, or the group's.
TEST_P(ServedCases, Case91OtherVariablesAreWritten) {
  EachMember([&](Member& member) {
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
                ::testing::Each(10 + static_cast<float>(s.replicas())));
  });
}

// Replica i of all has i + 1 times the gradient of (w - 1)^2, so a gradient
// that is left out, counted twice or not divided is seen.
TEST_P(ServedCases, Case104TrainingMovesTowardsTheMinimum) {
  constexpr int kSteps = 10;
  std::vector<std::vector<float>> seen(members_.size());
  EachWorker([&](size_t i) {
    Member& member = *members_[i];
    // Without a group each worker counts its replicas from 0.
    const int first =
        GetParam().apart ? static_cast<int>(i) * GetParam().replicas : 0;
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_EQ(member.trained->served()->pass()->step, step);
      const auto pass =
          [&](Replica& replica,
              absl::Span<const Variable>) -> absl::StatusOr<LossAndGradients> {
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
  EXPECT_THAT(seen, ::testing::Each(seen[0]));
  const double shrinks = 1 - 2 * kRate * (n() + 1) / 2;
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(seen[0][static_cast<size_t>(step)],
                1 + (kInitial - 1) * std::pow(shrinks, step + 1), 1e-4);
  }
}

// A gradient is absent at one worker alone: no other worker waits for it.
TEST_P(ServedCases, ARefusedGradientFailsAtItsWorkerAlone) {
  EachWorker([&](size_t i) {
    Member& member = *members_[i];
    const absl::Status applied = member.strategy->Run([&](Replica& replica) {
      std::vector<GradientAndVariable> gradients = {
          {Leaf(i == 0 ? Row({1, 2}) : Number(1)), member.w}};
      return member.trained->Apply(replica, std::move(gradients));
    });
    if (i == 0) {
      EXPECT_THAT(applied, StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("\"w\"")));
      // The servers still wait for this worker's gradient.
      EXPECT_THAT(member.strategy->Run([&](Replica& replica) {
        return member.trained->Apply(replica, {{Leaf(Number(1)), member.w}});
      }),
                  IsOk());
    } else {
      EXPECT_THAT(applied, IsOk());
    }
    EXPECT_EQ(member.trained->served()->pass()->step, 1);
  });
}

class GroupedServedCases : public ServedCases {};

// Values and metrics of all workers, between steps that the servers close.
TEST_P(GroupedServedCases, ReductionsAndMetricsAreThoseOfAllWorkers) {
  EachMember([&](Member& member) {
    Strategy& s = *member.strategy;
    EXPECT_EQ(s.replicas(), all());
    const Variable seen =
        s.Create(Named("seen", Number(0), Synchronization::kOnRead,
                       Aggregation::kSum))
            .value();
    for (int step = 1; step <= 3; ++step) {
      const auto ids = s.Run([&](Replica& replica) -> absl::StatusOr<Value> {
        absl::Status done = replica.AssignAdd(seen, Number(1));
        if (!done.ok()) return done;
        done = member.trained->Apply(replica, {{Leaf(Number(1)), member.w}});
        if (!done.ok()) return done;
        return Number(static_cast<float>(replica.id()));
      });
      ASSERT_THAT(ids, IsOk());
      EXPECT_THAT(s.Reduce(ReduceOp::kSum, *ids),
                  IsOkAndHolds(Number(n() * (n() - 1) / 2)));
      EXPECT_THAT(s.Read(seen),
                  IsOkAndHolds(Number(n() * static_cast<float>(step))));
    }
  });
}

TEST_P(GroupedServedCases, EachExampleOfABatchIsSeenByOneReplicaOfAll) {
  std::vector<std::vector<int64_t>> seen(fleet_.size());
  EachWorker([&](size_t i) {
    Strategy& s = *fleet_[i];
    auto data = s.Distribute(Dataset::Range(4 * all()).Batch(2 * all()));
    ASSERT_THAT(data, IsOk());
    for (auto step = data->Next(); step.ok(); step = data->Next()) {
      for (const std::vector<int64_t>& piece : NumbersOf(*step)) {
        EXPECT_EQ(piece.size(), 2u);
        seen[i].insert(seen[i].end(), piece.begin(), piece.end());
      }
    }
  });
  std::vector<int64_t> together;
  for (const auto& mine : seen) {
    together.insert(together.end(), mine.begin(), mine.end());
  }
  std::sort(together.begin(), together.end());
  std::vector<int64_t> expected(static_cast<size_t>(4 * all()));
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(together, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ServedCases,
    ::testing::Values(Shape{Kind::kParameterServer, 2, 1},
                      Shape{Kind::kParameterServer, 2, 2},
                      Shape{Kind::kParameterServer, 2, 1, /*apart=*/true},
                      Shape{Kind::kParameterServer, 2, 2, /*apart=*/true}),
    [](const auto& info) { return NameOf(info.param); });
INSTANTIATE_TEST_SUITE_P(Shapes, GroupedServedCases,
                         ::testing::Values(Shape{Kind::kParameterServer, 2, 1},
                                           Shape{Kind::kParameterServer, 2, 2}),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace lockstep::strategy
