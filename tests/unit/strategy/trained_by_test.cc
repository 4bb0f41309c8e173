#include "strategy/trained_by.h"

#include <cmath>
#include <functional>

#include "tests/unit/strategy/strategy_unit_fixture.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// A worker alone whose first call that contains `failing` fails.
class FailingGroup final : public Collective {
 public:
  explicit FailingGroup(std::string failing) : failing_(std::move(failing)) {}

  int rank() const override { return 0; }
  int members() const override { return 1; }
  absl::StatusOr<std::vector<Parcel>> Exchange(
      const std::string& description, std::vector<Leaf> mine) override {
    if (!failed_ && description.find(failing_) != std::string::npos) {
      failed_ = true;
      return absl::AbortedError("torn");
    }
    return std::vector<Parcel>{
        std::make_shared<const std::vector<Leaf>>(std::move(mine))};
  }

 private:
  const std::string failing_;
  bool failed_ = false;
};

class TrainedByTest : public TwoReplicas {
 protected:
  Variable Named(const std::string& name) {
    return strategy_->Create({name, Starting(Number(1)), {}, {}, {}, {}})
        .value();
  }
  std::unique_ptr<TrainedBy> Train(OptimizerConfig::Kind kind) {
    TrainedByOptions options;
    options.optimizer = OptimizerOf(kind);
    options.learning_rate = 0.5;
    return TrainedBy::Make(*strategy_, options, {w_, b_}).value();
  }
  // Applies these gradients of w in the two replicas, and none of b.
  absl::Status Apply(TrainedBy& trained, float first, float second) {
    return strategy_->Run(
        [&](Replica& replica, const Value& mine) {
          return trained.Apply(replica, {{Leaf(mine), w_}, {std::nullopt, b_}});
        },
        Each(first, second));
  }

  const Variable w_ = Named("w");
  const Variable b_ = Named("b");
};

TEST_F(TrainedByTest, TheMeanOfTheGradientsUpdatesAllCopies) {
  const auto trained = Train(OptimizerConfig::Kind::kGradientDescent);
  EXPECT_THAT(Apply(*trained, 1, 3), IsOk());
  EXPECT_THAT(CopiesOf(w_), ElementsAre(0, 0));
  EXPECT_THAT(CopiesOf(b_), ElementsAre(1, 1));
}

TEST_F(TrainedByTest, LearningRateMustBeFiniteAndNotNegative) {
  for (const double rate : {-1.0, std::nan(""), HUGE_VAL}) {
    TrainedByOptions options;
    options.learning_rate = rate;
    EXPECT_THAT(TrainedBy::Make(*strategy_, options, {w_}).status(),
                StatusIs(kInvalid, HasSubstr("learning_rate is ")));
  }
}

TEST_F(TrainedByTest, TheLearningRateOfTheNextStepCanBeSet) {
  const auto trained = Train(OptimizerConfig::Kind::kGradientDescent);
  for (const double rate : {-1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(trained->SetLearningRate(rate),
                StatusIs(kInvalid, HasSubstr("learning_rate is ")));
  }
  EXPECT_THAT(Apply(*trained, 1, 1), IsOk());
  EXPECT_THAT(CopiesOf(w_), ElementsAre(0.5, 0.5));
  EXPECT_THAT(trained->SetLearningRate(0.25), IsOk());
  EXPECT_THAT(Apply(*trained, 1, 1), IsOk());
  EXPECT_THAT(CopiesOf(w_), ElementsAre(0.25, 0.25));
}

TEST_F(TrainedByTest, AKindHasTheDefaultsOfAJobFile) {
  using Kind = OptimizerConfig::Kind;
  EXPECT_EQ(OptimizerOf(Kind::kSgd).kind, Kind::kSgd);
  EXPECT_EQ(OptimizerOf(Kind::kRmsProp).momentum, 0);
  EXPECT_EQ(OptimizerOf(Kind::kRmsProp).epsilon, 1e-10);
  EXPECT_EQ(OptimizerOf(Kind::kAdamW).weight_decay, 0.01);
  // Without momentum, two equal gradients make two equal steps.
  const auto trained = Train(Kind::kSgd);
  for (const float expected : {0.75F, 0.5F}) {
    EXPECT_THAT(Apply(*trained, 0.5, 0.5), IsOk());
    EXPECT_THAT(CopiesOf(w_), ElementsAre(expected, expected));
  }
}

TEST_F(TrainedByTest, SettingsThatAJobFileRefusesAreRefused) {
  const auto refused = [&](auto change, const std::string& field) {
    TrainedByOptions options;
    options.optimizer = OptimizerOf(OptimizerConfig::Kind::kAdam);
    change(options.optimizer);
    EXPECT_THAT(TrainedBy::Make(*strategy_, options, {w_}).status(),
                StatusIs(kInvalid, HasSubstr("optimizer." + field)));
  };
  refused([](OptimizerConfig& optimizer) { optimizer.beta1 = 1; }, "beta1");
  refused([](OptimizerConfig& optimizer) { optimizer.beta2 = 1.5; }, "beta2");
  refused([](OptimizerConfig& optimizer) { optimizer.epsilon = std::nan(""); },
          "epsilon");
  refused([](OptimizerConfig& optimizer) { optimizer.l1 = -1; }, "l1");
}

TEST_F(TrainedByTest, VariablesMustHaveNamesOfTheirOwn) {
  const Variable other = Named("w");
  for (const Variable& second : {w_, other}) {
    EXPECT_THAT(TrainedBy::Make(*strategy_, {}, {w_, second}).status(),
                StatusIs(kInvalid, HasSubstr("the name \"w\"")));
  }
}

TEST_F(TrainedByTest, SlotsComeWithTheFirstGradientAndLieByTheirVariable) {
  const auto trained = Train(OptimizerConfig::Kind::kMomentum);
  EXPECT_THAT(trained->SlotNames(), ElementsAre("momentum"));
  EXPECT_THAT(trained->Slot(w_, "momentum"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Apply(*trained, 1, 3), IsOk());
  const Variable slot = trained->Slot(w_, "momentum").value();
  EXPECT_EQ(slot.name(), "w/Momentum");
  EXPECT_EQ(slot.placement(), w_.placement());
  EXPECT_THAT(CopiesOf(slot), ElementsAre(2, 2));
  EXPECT_THAT(trained->Slot(b_, "momentum"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(trained->Slot(w_, "m"), StatusIs(absl::StatusCode::kNotFound));
}

// Training that stops after two steps and goes on with another object, whose
// state is that of the first, equals training without a stop.
TEST_F(TrainedByTest, StateOfACheckpointCanBeAssigned) {
  for (const auto kind :
       {OptimizerConfig::Kind::kMomentum, OptimizerConfig::Kind::kAdam,
        OptimizerConfig::Kind::kAdamTorch}) {
    const auto reset = [&] {
      EXPECT_THAT(strategy_->Assign(w_, Mirrored(Value::Scalar(0))), IsOk());
    };
    reset();
    const auto whole = Train(kind);
    for (int i = 0; i < 4; ++i) EXPECT_THAT(Apply(*whole, 1, 3), IsOk());
    const std::vector<float> expected = CopiesOf(w_);
    reset();
    const auto first = Train(kind);
    for (int i = 0; i < 2; ++i) EXPECT_THAT(Apply(*first, 1, 3), IsOk());
    const auto second = Train(kind);
    EXPECT_THAT(second->SetUpdates(w_, 2),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("MakeState")));
    ASSERT_THAT(second->MakeState(), IsOk());
    for (const std::string& name : first->SlotNames()) {
      const Value saved =
          strategy_->Read(first->Slot(w_, name).value()).value();
      EXPECT_THAT(
          strategy_->Assign(second->Slot(w_, name).value(), Mirrored(saved)),
          IsOk());
    }
    ASSERT_EQ(first->NonSlots().size(), second->NonSlots().size());
    for (size_t i = 0; i < first->NonSlots().size(); ++i) {
      const Value saved = strategy_->Read(first->NonSlots()[i]).value();
      EXPECT_THAT(strategy_->Assign(second->NonSlots()[i], Mirrored(saved)),
                  IsOk());
    }
    EXPECT_EQ(first->Updates(w_), 2);
    EXPECT_THAT(second->SetUpdates(w_, first->Updates(w_)), IsOk());
    for (int i = 0; i < 2; ++i) EXPECT_THAT(Apply(*second, 1, 3), IsOk());
    EXPECT_EQ(CopiesOf(w_), expected) << static_cast<int>(kind);
  }
}

TEST_F(TrainedByTest, UpdatesBelowZeroAreRefused) {
  const auto trained = Train(OptimizerConfig::Kind::kAdamTorch);
  ASSERT_THAT(trained->MakeState(), IsOk());
  EXPECT_THAT(trained->SetUpdates(w_, -1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
  EXPECT_EQ(trained->Updates(w_), 0);
}

// With equal gradients of 1, the sum of the gradients after k steps is k, and
// that of their squares 0.1 + k; l1 takes 0.1 k from the first.
TEST_F(TrainedByTest, AdagradDaRegularisesByTheNumberOfSteps) {
  auto one = Strategy::Make({Kind::kOneDevice, 1, {}}).value();
  const Slices row{{1}, Number(1).Reshaped({1}), std::nullopt};
  for (const bool dense : {true, false}) {
    const Value start = Value::Of<float>(ElementType::kFloat32, {2}, {0, 0});
    const Variable v = one->Create("v", start).value();
    const Leaf gradient =
        dense ? Leaf(Value::Of<float>(ElementType::kFloat32, {2}, {1, 1}))
              : Leaf(row);
    TrainedByOptions options;
    options.optimizer = OptimizerOf(OptimizerConfig::Kind::kAdagradDa);
    options.optimizer.l1 = 0.1;
    options.learning_rate = 0.5;
    auto trained = TrainedBy::Make(*one, options, {v}).value();
    for (int k = 1; k <= 3; ++k) {
      if (k == 3) {  // as from a checkpoint
        EXPECT_EQ(trained->Steps(), 2);
        EXPECT_THAT(trained->SetSteps(0), IsOk());
        EXPECT_THAT(trained->SetSteps(2), IsOk());
      }
      ASSERT_THAT(one->Run([&](Replica& replica) {
        return trained->Apply(replica, {{gradient, v}});
      }),
                  IsOk());
      const float n = static_cast<float>(k);
      EXPECT_NEAR(one->Read(v)->Elements<float>()[1],
                  -0.5F * 0.9F * n / std::sqrt(0.1F + n), 1e-6)
          << "step " << k;
    }
    EXPECT_THAT(trained->SetSteps(-1),
                StatusIs(kInvalid, HasSubstr("steps is -1")));
  }
}

// The dense variable comes first.
TEST_F(TrainedByTest, SparseFtrlWithoutALearningRateChangesNothing) {
  auto one = Strategy::Make({Kind::kOneDevice, 1, {}}).value();
  const Value start = Value::Of<float>(ElementType::kFloat32, {2}, {1, 1});
  const Variable dense = one->Create("dense", start).value();
  const Variable table = one->Create("table", start).value();
  const Slices row{{1}, Number(1).Reshaped({1}), std::nullopt};
  TrainedByOptions options;
  options.optimizer = OptimizerOf(OptimizerConfig::Kind::kFtrl);
  options.learning_rate = 0;
  auto trained = TrainedBy::Make(*one, options, {dense, table}).value();

  EXPECT_THAT(one->Run([&](Replica& replica) {
    return trained->Apply(replica, {{Leaf(start), dense}, {Leaf(row), table}});
  }),
              StatusIs(kInvalid, HasSubstr("learning_rate is 0")));

  EXPECT_EQ(one->Read(dense).value(), start);
  EXPECT_EQ(trained->Steps(), 0);
  EXPECT_TRUE(trained->OwnVariables().empty());
}

TEST_F(TrainedByTest, AdamsPowersMoveOnceAStep) {
  const auto trained = Train(OptimizerConfig::Kind::kAdam);
  EXPECT_THAT(Apply(*trained, 1, 3), IsOk());
  EXPECT_THAT(Apply(*trained, 1, 3), IsOk());
  ASSERT_EQ(trained->NonSlots().size(), 2u);
  const float power = 0.9f * 0.9f * 0.9f;
  EXPECT_THAT(CopiesOf(trained->NonSlots()[0]), ElementsAre(power, power));
  EXPECT_EQ(trained->OwnVariables().size(), 4u);
}

TEST_F(TrainedByTest, APowerThatCannotBeMadeLeavesNone) {
  auto strategy = Strategy::Make({Kind::kMultiWorkerMirrored, 1, {}},
                                 std::make_unique<FailingGroup>("beta2_power"))
                      .value();
  const Variable v = strategy->Create("v", Number(1)).value();
  TrainedByOptions options;
  options.optimizer = OptimizerOf(OptimizerConfig::Kind::kAdam);
  auto trained = TrainedBy::Make(*strategy, options, {v}).value();
  const auto apply = [&] {
    return strategy->Run([&](Replica& replica) {
      return trained->Apply(replica, {{Leaf(Number(1)), v}});
    });
  };
  EXPECT_THAT(apply(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(trained->NonSlots().empty());
  EXPECT_THAT(apply(), IsOk());
  EXPECT_EQ(trained->NonSlots().size(), 2u);
}

TEST_F(TrainedByTest, GradientsThatDoNotFitChangeNothing) {
  const auto trained = Train(OptimizerConfig::Kind::kAdam);
  const auto apply = [&](auto gradients_of) {
    return strategy_->Run([&](Replica& replica) {
      return trained->Apply(replica, gradients_of(replica));
    });
  };
  using Pairs = std::vector<GradientAndVariable>;
  EXPECT_THAT(apply([&](Replica&) {
                return Pairs{{std::nullopt, w_}, {std::nullopt, b_}};
              }),
              StatusIs(kInvalid, HasSubstr("no variable has a gradient")));
  EXPECT_THAT(apply([&](Replica& replica) {
                return replica.id() == 0 ? Pairs{{Leaf(Number(1)), w_}}
                                         : Pairs{{std::nullopt, w_}};
              }),
              StatusIs(kInvalid, HasSubstr("dense, sparse or absent")));
  EXPECT_THAT(apply([&](Replica&) {
                return Pairs{{Leaf(Number(1).Reshaped({1})), w_}};
              }),
              StatusIs(kInvalid, HasSubstr("does not fit")));
  const Variable counter =
      strategy_
          ->Create("counter", Value::Of<int32_t>(ElementType::kInt32, {}, {0}))
          .value();
  EXPECT_THAT(
      apply([&](Replica&) {
        return Pairs{
            {Leaf(Number(1)), w_},
            {Leaf(Value::Of<int32_t>(ElementType::kInt32, {}, {1})), counter}};
      }),
      StatusIs(kInvalid, HasSubstr("\"counter\" is of int32")));
  EXPECT_THAT(CopiesOf(w_), ElementsAre(1, 1));
  EXPECT_TRUE(trained->OwnVariables().empty());
}

TEST_F(TrainedByTest, AVariableWithoutElementsIsTrainedInVain) {
  const Value nothing = Value::Zeros(ElementType::kFloat32, {0, 3}).value();
  const Variable empty = strategy_->Create("empty", nothing).value();
  for (const auto kind : {OptimizerConfig::Kind::kGradientDescent,
                          OptimizerConfig::Kind::kAdam}) {
    for (const Leaf& gradient :
         {Leaf(nothing), Leaf(Slices{{}, nothing, std::nullopt})}) {
      const auto trained = Train(kind);
      EXPECT_THAT(strategy_->Run([&](Replica& replica) {
        return trained->Apply(replica,
                              {{Leaf(Number(1)), w_}, {gradient, empty}});
      }),
                  IsOk());
      EXPECT_EQ(trained->Steps(), 1);
      EXPECT_EQ(strategy_->Read(empty).value(), nothing);
    }
  }
}

// Two workers that compute gradients of different variables of one shape.
TEST_F(TrainedByTest, WorkersWithGradientsOfOtherVariablesAreRefused) {
  InTwoWorkers(1, [](Strategy& strategy, bool first) {
    const Variable a = strategy.Create("a", Number(1)).value();
    const Variable b = strategy.Create("b", Number(1)).value();
    auto trained = TrainedBy::Make(strategy, {}, {a, b}).value();
    const std::optional<Leaf> some = Leaf(Number(1));
    const std::optional<Leaf> none;
    EXPECT_THAT(strategy.Run([&](Replica& replica) {
      return trained->Apply(
          replica, {{first ? some : none, a}, {first ? none : some, b}});
    }),
                StatusIs(kInvalid, AllOf(HasSubstr("(\"a\") at rank 0"),
                                         HasSubstr("(\"b\") at rank 1"))));
    for (const Variable& each : {a, b}) {
      EXPECT_EQ(strategy.Read(each).value(), Number(1));
    }
    // The same for all other calls that wait for the other worker.
    const auto refused =
        StatusIs(kInvalid, AllOf(HasSubstr("\"a\""), HasSubstr("\"b\"")));
    EXPECT_THAT(strategy.Create(first ? "a" : "b", Number(1)), refused);
    const auto make = [&](Synchronization synchronization) {
      VariableOptions options;
      options.initializer = Starting(Number(1));
      options.synchronization = synchronization;
      options.aggregation = Aggregation::kSum;
      std::vector<Variable> made;
      for (const char* name : {"a", "b"}) {
        options.name = name;
        made.push_back(strategy.Create(options).value());
      }
      return made[first ? 0 : 1];
    };
    const Variable on_read = make(Synchronization::kOnRead);
    EXPECT_THAT(strategy.Read(on_read), refused);
    const Variable on_write = make(Synchronization::kOnWrite);
    EXPECT_THAT(strategy.Run([&](Replica& replica) {
      return replica.Assign(on_write, Number(2));
    }),
                refused);
    EXPECT_EQ(strategy.Read(on_write).value(), Number(1));
  });
}

// The other worker would wait for a call that does not come.
TEST_F(TrainedByTest, GradientsThatOneWorkerRefusesFailAtBoth) {
  InTwoWorkers(1, [](Strategy& strategy, bool first) {
    const Variable v = strategy.Create("v", Number(1)).value();
    auto trained = TrainedBy::Make(strategy, {}, {v}).value();
    const auto apply = [&](const std::optional<Leaf>& gradient,
                           const Variable& variable) {
      return strategy.Run([&](Replica& replica) {
        return trained->Apply(replica, {{gradient, variable}});
      });
    };
    const std::optional<Leaf> some = Leaf(Number(1));
    const std::optional<Leaf> row = Leaf(Number(1).Reshaped({1}));
    const std::optional<Leaf> none;
    EXPECT_THAT(apply(first ? some : none, v),
                StatusIs(kInvalid, HasSubstr("no variable has a gradient")));
    EXPECT_THAT(apply(first ? row : some, v),
                StatusIs(kInvalid, HasSubstr("does not fit")));
    auto other = Strategy::Make({Kind::kOneDevice, 1, {}}).value();
    const Variable foreign = other->Create("foreign", Number(1)).value();
    EXPECT_THAT(apply(some, first ? v : foreign),
                StatusIs(kInvalid, HasSubstr("another strategy's")));
    EXPECT_THAT(apply(none, v),
                StatusIs(kInvalid, "no variable has a gradient"));
    EXPECT_EQ(trained->Steps(), 0);
    EXPECT_EQ(strategy.Read(v).value(), Number(1));
    EXPECT_THAT(apply(some, v), IsOk());
  });
}

// Sparse gradients are reduced one by one, before the dense ones.
TEST_F(TrainedByTest, WorkersWithOtherSetsOfGradientsChangeNoVariable) {
  InTwoWorkers(1, [](Strategy& strategy, bool first) {
    const Value start = Number(1).Reshaped({1});
    const Variable table = strategy.Create("table", start).value();
    const Variable dense = strategy.Create("dense", start).value();
    auto trained = TrainedBy::Make(strategy, {}, {table, dense}).value();
    const Leaf row = Slices{{0}, start, std::nullopt};
    const std::optional<Leaf> some = Leaf(start);
    const std::optional<Leaf> none;
    const auto apply = [&](const std::optional<Leaf>& of_dense) {
      return strategy.Run([&](Replica& replica) {
        return trained->Apply(replica, {{row, table}, {of_dense, dense}});
      });
    };
    EXPECT_THAT(apply(first ? some : none),
                StatusIs(kInvalid, HasSubstr("one of 2 values")));
    EXPECT_EQ(strategy.Read(table).value(), start);
    EXPECT_EQ(trained->Steps(), 0);
    EXPECT_THAT(apply(some), IsOk());
  });
}

TEST_F(TrainedByTest, MinimizeTakesAGradientForEachChosenVariable) {
  const auto trained = Train(OptimizerConfig::Kind::kGradientDescent);
  const auto minimize = [&](size_t gradients) {
    return strategy_->Run([&](Replica& replica) {
      return trained->Minimize(
          replica,
          [&](Replica&, absl::Span<const Variable> variables)
              -> absl::StatusOr<LossAndGradients> {
            EXPECT_EQ(variables.size(), 2u);
            return LossAndGradients{Number(7), std::vector<std::optional<Leaf>>(
                                                   gradients, Leaf(Number(1)))};
          });
    });
  };
  const auto losses = minimize(2);
  ASSERT_THAT(losses, IsOk());
  EXPECT_EQ(losses->At(1), Number(7));
  EXPECT_THAT(CopiesOf(b_), ElementsAre(0.5, 0.5));
  EXPECT_THAT(minimize(1),
              StatusIs(kInvalid, HasSubstr("1 gradient for 2 variables")));
}

TEST_F(TrainedByTest, TheGradientOfTheLossMultipliesAllGradients) {
  const auto trained = Train(OptimizerConfig::Kind::kGradientDescent);
  const auto losses = strategy_->Run([&](Replica& replica) {
    return trained->Minimize(
        replica,
        [&](Replica&,
            absl::Span<const Variable>) -> absl::StatusOr<LossAndGradients> {
          return LossAndGradients{Number(7), {Leaf(Number(1)), std::nullopt}};
        },
        Number(4));
  });
  ASSERT_THAT(losses, IsOk());
  EXPECT_EQ(losses->At(0), Number(7));
  EXPECT_THAT(CopiesOf(w_), ElementsAre(-1, -1));
  EXPECT_THAT(CopiesOf(b_), ElementsAre(1, 1));
}

TEST_F(TrainedByTest, OnlyTrainableVariablesOfTheStrategyAreTrained) {
  const Variable read = Make(Synchronization::kOnRead, Aggregation::kSum);
  EXPECT_THAT(TrainedBy::Make(*strategy_, {}, {read}), StatusIs(kInvalid));
}

}  // namespace
}  // namespace lockstep::strategy
