#include "strategy/served_variables.h"

#include <algorithm>
#include <deque>
#include <map>
#include <thread>

#include "common/collective/local_group.h"
#include "strategy/servers/training_job.h"
#include "strategy/trained_by.h"
#include "tests/unit/strategy/strategy_unit_fixture.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

// The gradients of a pass and its loss, as the servers got them.
struct Pushed {
  std::vector<std::optional<Value>> gradients;
  double loss = 0;
};

// What a test sees and decides of a job: variable i has the value
// 10 * step + i in a pass.
struct Servers {
  std::deque<int64_t> steps = {0, 1, 2};  // of the passes to come
  absl::Status end;                       // after them
  absl::Status answer;                    // to a push
  bool epochs_are_over = false;
  std::optional<int64_t> last_step;  // whose values it has at the end
  std::vector<Pushed> pushed;
};

class FakeJob final : public TrainingJob {
 public:
  FakeJob(Servers& servers, size_t variables)
      : servers_(servers), values_(variables) {}

  absl::StatusOr<std::optional<JobPass>> Next(
      absl::FunctionRef<absl::Status()> group) override {
    if (servers_.steps.empty()) {
      if (absl::Status lives = group(); !lives.ok()) return lives;
      if (!servers_.end.ok()) return servers_.end;
      SetValues(servers_.last_step.value_or(-1));
      return std::nullopt;
    }
    JobPass pass;
    pass.step = servers_.steps.front();
    pass.batch = pass.step;
    servers_.steps.pop_front();
    SetValues(pass.step);
    return pass;
  }
  bool has_last_values() const override {
    return servers_.last_step.has_value();
  }
  absl::Span<const std::byte> value(size_t variable) const override {
    return {reinterpret_cast<const std::byte*>(&values_[variable]),
            sizeof(float)};
  }
  absl::Status Push(absl::Span<const std::optional<Value>> gradients,
                    double loss) override {
    servers_.pushed.push_back({{gradients.begin(), gradients.end()}, loss});
    return servers_.answer;
  }
  absl::StatusOr<std::vector<int64_t>> Examples(int64_t num_examples,
                                                int64_t batch) override {
    if (servers_.epochs_are_over) return absl::OutOfRangeError("epochs");
    return std::vector<int64_t>{num_examples, batch};
  }
  void EndInput() override {
    EXPECT_TRUE(servers_.epochs_are_over);
    servers_.steps.clear();
  }

 private:
  void SetValues(int64_t step) {
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = static_cast<float>(10 * step) + static_cast<float>(i);
    }
  }

  Servers& servers_;
  std::vector<float> values_;
};

class ServedVariablesTest : public TwoReplicas {
 protected:
  ServedVariablesTest() {
    strategy_ = Strategy::Make({Kind::kParameterServer, 2, {}}).value();
    for (const char* name : {"w", "b"}) {
      variables_.push_back(strategy_->Create(name, Number(1)).value());
    }
  }

  absl::Status Begin(TrainedByOptions options = {}) {
    auto made =
        TrainedBy::Make(*strategy_, options, variables_,
                        std::make_unique<FakeJob>(servers_, variables_.size()));
    if (made.ok()) trained_ = *std::move(made);
    return made.status();
  }
  // Hands in gradients of w in both replicas, and losses.
  absl::Status Minimize(float first, float second) {
    return strategy_
        ->Run(
            [&](Replica& replica, const Value& mine) {
              return trained_->Minimize(
                  replica,
                  [&](Replica&, absl::Span<const Variable>)
                      -> absl::StatusOr<LossAndGradients> {
                    return LossAndGradients{mine, {Leaf(mine), std::nullopt}};
                  });
            },
            Each(first, second))
        .status();
  }

  Servers servers_;
  std::vector<Variable> variables_;
  std::unique_ptr<TrainedBy> trained_;
};

TEST_F(ServedVariablesTest, DescribesVariablesWithTheirFirstValues) {
  VariableStore store(Kind::kParameterServer, Placement{{"cpu:0", "cpu:1"}});
  const Variable made =
      store
          .Make({"matrix", Starting(Number(0)), {}, {}, {}, {}},
                Value::Of<float>(ElementType::kFloat32, {1, 2}, {3, 4}))
          .value();
  const std::vector<JobVariable> described =
      ServedVariables::Describe(store, {made});
  ASSERT_EQ(described.size(), 1);
  EXPECT_EQ(described[0].name, "matrix");
  EXPECT_THAT(described[0].shape, ElementsAre(1, 2));
  EXPECT_EQ(described[0].dtype, DType::kFloat32);
  EXPECT_EQ(described[0].initial.data(),
            store.ReadCopy(made, 0).bytes().data());
  EXPECT_EQ(described[0].initial.size(), 8);
}

TEST_F(ServedVariablesTest, ValuesAreThoseOfTheServersFromTheBeginningOn) {
  ASSERT_THAT(Begin(), IsOk());
  EXPECT_THAT(CopiesOf(variables_[0]), ElementsAre(0, 0));
  EXPECT_THAT(CopiesOf(variables_[1]), ElementsAre(1, 1));
  EXPECT_EQ(trained_->served()->pass()->step, 0);
}

TEST_F(ServedVariablesTest, ServersGetTheMeanOfTheReplicasAndNoAbsentOne) {
  ASSERT_THAT(Begin(), IsOk());
  ASSERT_THAT(Minimize(1, 4), IsOk());
  ASSERT_EQ(servers_.pushed.size(), 1);
  EXPECT_THAT(servers_.pushed[0].gradients,
              ElementsAre(Optional(Number(2.5)), std::nullopt));
  EXPECT_EQ(servers_.pushed[0].loss, 2.5);
  EXPECT_THAT(CopiesOf(variables_[0]), ElementsAre(10, 10));
  EXPECT_EQ(trained_->served()->pass()->step, 1);
}

TEST_F(ServedVariablesTest, APassThatCameTooLateIsCountedAndTheNextOneTaken) {
  ASSERT_THAT(Begin(), IsOk());
  servers_.answer = absl::AbortedError("the step is closed");
  ASSERT_THAT(Minimize(1, 1), IsOk());
  EXPECT_EQ(trained_->served()->dropped(), 1);
  EXPECT_THAT(CopiesOf(variables_[0]), ElementsAre(10, 10));
}

TEST_F(ServedVariablesTest, APassThatComesAgainHasItsOldValues) {
  servers_.steps = {5, 5};
  ASSERT_THAT(Begin(), IsOk());
  ASSERT_THAT(Minimize(1, 1), IsOk());
  EXPECT_EQ(trained_->served()->pass()->step, 5);
  EXPECT_THAT(CopiesOf(variables_[0]), ElementsAre(50, 50));
}

TEST_F(ServedVariablesTest, TheEndOfTrainingIsNoErrorOfTheLastPass) {
  servers_.steps = {0};
  ASSERT_THAT(Begin(), IsOk());
  EXPECT_THAT(Minimize(1, 1), IsOk());
  EXPECT_EQ(trained_->served()->pass(), std::nullopt);
  EXPECT_THAT(Minimize(1, 1), StatusIs(absl::StatusCode::kOutOfRange,
                                       HasSubstr("training is over")));
  EXPECT_THAT(trained_->served()->Examples(9),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(servers_.pushed.size(), 1);
}

// The last pass of a worker may have come too late for the last step.
TEST_F(ServedVariablesTest, CopiesHaveTheValuesOfTheEnd) {
  servers_.steps = {0};
  servers_.last_step = 7;
  ASSERT_THAT(Begin(), IsOk());
  EXPECT_THAT(Minimize(1, 1), IsOk());
  EXPECT_EQ(trained_->served()->pass(), std::nullopt);
  EXPECT_THAT(CopiesOf(variables_[0]), ElementsAre(70, 70));
  EXPECT_THAT(CopiesOf(variables_[1]), ElementsAre(71, 71));
}

// As to evaluate a checkpoint in the program that has trained.
TEST_F(ServedVariablesTest, AfterTrainingTheProgramWritesTheVariables) {
  servers_.steps = {0};
  ASSERT_THAT(Begin(), IsOk());
  EXPECT_THAT(Minimize(1, 1), IsOk());
  EXPECT_THAT(strategy_->Assign(variables_[0], Number(3)), IsOk());
  EXPECT_THAT(CopiesOf(variables_[0]), ElementsAre(3, 3));
}

TEST_F(ServedVariablesTest, WithoutItsTrainingTheProgramWritesTheVariables) {
  ASSERT_THAT(Begin(), IsOk());
  trained_.reset();
  EXPECT_THAT(strategy_->Assign(variables_[0], Number(3)), IsOk());
}

TEST_F(ServedVariablesTest, CopiesKeepTheirValuesIfTheEndHasNone) {
  servers_.steps = {0, 1};
  ASSERT_THAT(Begin(), IsOk());
  EXPECT_THAT(Minimize(1, 1), IsOk());
  EXPECT_THAT(Minimize(1, 1), IsOk());
  EXPECT_EQ(trained_->served()->pass(), std::nullopt);
  EXPECT_THAT(CopiesOf(variables_[0]), ElementsAre(10, 10));
}

TEST_F(ServedVariablesTest, TheReasonOfAFailedJobIsReturned) {
  servers_.steps = {0};
  servers_.end = absl::InternalError("server 1 lost its state");
  ASSERT_THAT(Begin(), IsOk());
  EXPECT_THAT(Minimize(1, 1), StatusIs(absl::StatusCode::kInternal,
                                       HasSubstr("lost its state")));
}

TEST_F(ServedVariablesTest, AJobThatRefusesTheWorkerMakesNothing) {
  servers_.steps.clear();
  servers_.end = absl::InvalidArgumentError("variable \"w\" differs");
  EXPECT_THAT(Begin(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(strategy_->Assign(variables_[0], Number(3)), IsOk());
}

TEST_F(ServedVariablesTest, NothingButTheServersWritesTheVariables) {
  ASSERT_THAT(Begin(), IsOk());
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("lies on the job's servers"));
  EXPECT_THAT(strategy_->Assign(variables_[0], Number(3)), refused);
  EXPECT_THAT(strategy_->Across([&](Cross& cross) {
    return cross.Update(variables_[0],
                        [](Copy& copy) { return copy.Assign(Number(3)); });
  }),
              refused);
  EXPECT_THAT(strategy_->Run([&](Replica& replica) {
    return replica.Assign(variables_[0], Number(3));
  }),
              refused);
  EXPECT_THAT(CopiesOf(variables_[0]), ElementsAre(0, 0));
}

TEST_F(ServedVariablesTest, OtherVariablesStayTheProcesss) {
  ASSERT_THAT(Begin(), IsOk());
  const Variable mine = strategy_->Create("mine", Number(1)).value();
  EXPECT_THAT(strategy_->Assign(mine, Number(3)), IsOk());
  EXPECT_THAT(strategy_->Run([&](Replica& replica) {
    return trained_->Apply(replica, {{Leaf(Number(1)), mine}});
  }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not on the servers")));
  EXPECT_TRUE(servers_.pushed.empty());
}

// Other kinds apply one after the other.
TEST_F(ServedVariablesTest, TwoGradientsOfAVariableAreRefused) {
  ASSERT_THAT(Begin(), IsOk());
  const Leaf gradient = Number(1);
  EXPECT_THAT(strategy_->Run([&](Replica& replica) {
    return trained_->Apply(
        replica, {{gradient, variables_[0]}, {gradient, variables_[0]}});
  }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"w\" has two gradients")));
  EXPECT_TRUE(servers_.pushed.empty());
}

TEST_F(ServedVariablesTest, RowsAreRefusedAndTheFixIsNamed) {
  variables_ = {
      strategy_
          ->Create("rows", Value::Of<float>(ElementType::kFloat32, {1}, {0}))
          .value()};
  ASSERT_THAT(Begin(), IsOk());
  const Slices rows{{0}, Value::Of<float>(ElementType::kFloat32, {1}, {1}), {}};
  EXPECT_THAT(strategy_->Run([&](Replica& replica) {
    return trained_->Apply(replica, {{Leaf(rows), variables_[0]}});
  }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("hand in a dense one")));
  EXPECT_TRUE(servers_.pushed.empty());
}

TEST_F(ServedVariablesTest, ExamplesAreThoseOfThePassAtHand) {
  ASSERT_THAT(Begin(), IsOk());
  ASSERT_THAT(Minimize(1, 1), IsOk());
  EXPECT_THAT(trained_->served()->Examples(50),
              IsOkAndHolds(ElementsAre(50, 1)));
}

// The process was started again after the job's last epoch.
TEST_F(ServedVariablesTest, TheEndOfTheInputEndsThePasses) {
  ASSERT_THAT(Begin(), IsOk());
  servers_.epochs_are_over = true;
  EXPECT_THAT(trained_->served()->Examples(50),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_FALSE(trained_->served()->pass().has_value());
  EXPECT_TRUE(servers_.pushed.empty());
}

TEST_F(ServedVariablesTest, SlotsLieOnTheServers) {
  ASSERT_THAT(Begin(), IsOk());
  EXPECT_THAT(trained_->MakeState(), IsOk());
  EXPECT_THAT(
      trained_->Slot(variables_[0], "momentum"),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("lockstep export")));
  EXPECT_TRUE(trained_->OwnVariables().empty());
}

TEST_F(ServedVariablesTest, SumsAndOtherKindsAreRefused) {
  TrainedByOptions sum;
  sum.reduce = ReduceOp::kSum;
  EXPECT_THAT(Begin(sum), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("use kMean")));
  auto mirrored = Strategy::Make({Kind::kMirrored, 1, {}}).value();
  const Variable variable = mirrored->Create("w", Number(1)).value();
  EXPECT_THAT(TrainedBy::Make(*mirrored, {}, {variable},
                              std::make_unique<FakeJob>(servers_, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("kParameterServer")));
}

// The job would wait for a worker that waits for this one, to form a new group.
TEST_F(ServedVariablesTest, TheEndOfTheGroupEndsTheWaitForAPass) {
  auto members = MakeLocalGroup(2, absl::Minutes(1));
  StrategyOptions options;
  options.kind = Kind::kParameterServer;
  options.replicas = 2;
  auto other = Strategy::Make(options, std::move(members[1])).value();
  strategy_ = Strategy::Make(options, std::move(members[0])).value();
  const auto create = [](Strategy& strategy) {
    return std::vector<Variable>{strategy.Create("w", Number(1)).value(),
                                 strategy.Create("b", Number(1)).value()};
  };
  std::thread creates([&] { create(*other); });
  variables_ = create(*strategy_);
  creates.join();
  servers_.steps = {0};
  ASSERT_THAT(Begin(), IsOk());
  CommunicationOptions once;
  once.timeout = absl::Milliseconds(1);
  EXPECT_THAT(other->Run([&](Replica& replica) {
    return replica.AllReduce(ReduceOp::kSum, Number(1), once);
  }),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(Minimize(1, 2), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                       HasSubstr("rank 0")));
  EXPECT_EQ(trained_->served()->pass(), std::nullopt);
  EXPECT_EQ(servers_.pushed.size(), 1u);
}

}  // namespace
}  // namespace lockstep::strategy
