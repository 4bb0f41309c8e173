#include "strategy/replica.h"

#include "tests/unit/strategy/strategy_unit_fixture.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReplicaTest : public TwoReplicas {
 protected:
  // Assigns 3 in replica 0, and 5 in replica 1.
  absl::Status AssignThreeAndFive(const Variable& variable) {
    return strategy_->Run(
        [&](Replica& replica, const Value& mine) {
          return replica.Assign(variable, mine);
        },
        Each(3, 5));
  }
};

TEST_F(ReplicaTest, AWriteFollowsTheAggregation) {
  const struct {
    Aggregation aggregation;
    std::vector<float> on_write;
    std::vector<float> on_read;
  } kCases[] = {
      {Aggregation::kNone, {3, 5}, {3, 5}},
      {Aggregation::kSum, {8, 8}, {3, 5}},
      {Aggregation::kMean, {4, 4}, {3, 5}},
      {Aggregation::kOnlyFirstReplica, {3, 3}, {3, 5}},
  };
  for (const auto& each : kCases) {
    const Variable on_write = Make(Synchronization::kAuto, each.aggregation);
    EXPECT_THAT(AssignThreeAndFive(on_write), IsOk());
    EXPECT_EQ(CopiesOf(on_write), each.on_write);
    const Variable on_read = Make(Synchronization::kOnRead, each.aggregation);
    EXPECT_THAT(AssignThreeAndFive(on_read), IsOk());
    EXPECT_EQ(CopiesOf(on_read), each.on_read);
  }
}

TEST_F(ReplicaTest, CodeWithoutAStrategyWritesAllCopies) {
  for (const auto aggregation :
       {Aggregation::kNone, Aggregation::kSum, Aggregation::kMean}) {
    const Variable v = Make(Synchronization::kAuto, aggregation, 1);
    EXPECT_THAT(Replica::Current()->Assign(v, Number(3)), IsOk());
    EXPECT_THAT(CopiesOf(v), ElementsAre(3, 3));
    EXPECT_THAT(Replica::Current()->AssignAdd(v, Number(1)), IsOk());
    EXPECT_THAT(CopiesOf(v), ElementsAre(4, 4));
    EXPECT_EQ(*Replica::Current()->Read(v), Number(4));
  }
  const Variable sum = Make(Synchronization::kOnRead, Aggregation::kSum, 1);
  EXPECT_EQ(*Replica::Current()->Read(sum), Number(2));
  EXPECT_EQ(*Replica::Current()->ReadAggregated(sum), Number(2));
  EXPECT_THAT(Replica::Current()->Assign(sum, Number(8)), IsOk());
  EXPECT_THAT(CopiesOf(sum), ElementsAre(4, 4));
  EXPECT_THAT(Replica::Current()->AssignAdd(sum, Number(8)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ReplicaTest, CodeWithoutAStrategyScattersToAllCopies) {
  const Variable table =
      strategy_
          ->Create("table",
                   Value::Of<float>(ElementType::kFloat32, {2, 1}, {0, 0}))
          .value();
  EXPECT_THAT(
      Replica::Current()->Scatter(
          ScatterOp::kAdd, table,
          {{1}, Value::Of<float>(ElementType::kFloat32, {1, 1}, {4}), {}}),
      IsOk());
  const auto copies = strategy_->LocalCopies(table).value();
  for (size_t i = 0; i < copies.size(); ++i) {
    EXPECT_THAT(copies.At(i).Elements<float>(), ElementsAre(0, 4));
  }
}

// The sanitizer of threads checks that the message reads no other copy.
TEST_F(ReplicaTest, AValueThatDoesNotFitIsRefusedWhileTheOtherReplicaWrites) {
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone);
  EXPECT_THAT(strategy_->Run([&](Replica& replica) -> absl::Status {
    for (int i = 0; i < 100; ++i) {
      if (replica.id() == 0) {
        if (auto put = replica.Assign(v, Number(1)); !put.ok()) return put;
      } else {
        EXPECT_THAT(replica.Assign(v, Number(1).Reshaped({1})),
                    StatusIs(absl::StatusCode::kInvalidArgument,
                             HasSubstr("\"v\" is float32 [], the new value "
                                       "float32 [1]")));
      }
    }
    return absl::OkStatus();
  }),
              IsOk());
}

TEST_F(ReplicaTest, MergeGivesEachReplicaItsPart) {
  const auto results = strategy_->Run(
      [](Replica& replica, const Value& mine) {
        return replica.Merge(
            [](Cross&, const PerReplica<Value>& all,
               const PerReplica<int>& ids) {
              EXPECT_EQ(ids.At(1), 1);
              return PerReplica<Value>({all.At(1), all.At(0)}, 0);
            },
            mine, replica.id());
      },
      Each(3, 5));
  ASSERT_THAT(results, IsOk());
  EXPECT_THAT(results->local(), ElementsAre(Number(5), Number(3)));
}

TEST_F(ReplicaTest, AMergeMustReturnAComponentForEachReplica) {
  const auto results = strategy_->Run([](Replica& replica) {
    const auto mine =
        replica.Merge([](Cross&) { return PerReplica<Value>({Number(1)}, 0); });
    EXPECT_THAT(mine, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("fewer components")));
  });
  EXPECT_THAT(results, IsOk());
}

TEST_F(ReplicaTest, AReplicaThatFailsEndsTheWaitOfTheOther) {
  EXPECT_THAT(strategy_->Run([](Replica& replica) -> absl::Status {
    if (replica.id() == 1) return absl::DataLossError("torn");
    return replica.Merge([](Cross&) { return absl::OkStatus(); });
  }),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(ReplicaTest, ReplicasThatAccessAnotherVariableAreRefused) {
  const auto named = [&](const std::string& name) {
    VariableOptions options;
    options.name = name;
    options.initializer = Starting(Number(1).Reshaped({1}));
    options.aggregation = Aggregation::kSum;
    return strategy_->Create(options).value();
  };
  const Variable a = named("a");
  const Variable b = named("b");
  const auto refused = [&](auto access, const std::string& first,
                           const std::string& second) {
    const auto status = strategy_->Run([&](Replica& replica) -> absl::Status {
      return access(replica, replica.id() == 0);
    });
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr(first), HasSubstr(second))));
  };
  const Value two = Number(2).Reshaped({1});
  refused(
      [&](Replica& replica, bool first) {
        return first ? replica.Assign(a, two) : replica.AssignAdd(b, two);
      },
      "Assign(\"a\")", "AssignAdd(\"b\")");
  refused(
      [&](Replica& replica, bool first) {
        return first ? replica.AssignAdd(a, two) : replica.AssignSub(a, two);
      },
      "AssignAdd(\"a\")", "AssignSub(\"a\")");
  refused(
      [&](Replica& replica, bool first) {
        return replica.Scatter(ScatterOp::kAdd, first ? a : b,
                               {{0}, two, std::nullopt});
      },
      "ScatterAdd(\"a\")", "ScatterAdd(\"b\")");
  refused(
      [&](Replica& replica, bool first) {
        return replica.ReadAggregated(first ? a : b).status();
      },
      "ReadAggregated(\"a\")", "ReadAggregated(\"b\")");
  refused(
      [&](Replica& replica, bool first) {
        return replica.Update(
            first ? a : b,
            [](Copy& copy, const Value& mine) { return copy.Assign(mine); },
            two);
      },
      "Update(\"a\")", "Update(\"b\")");
  EXPECT_THAT(CopiesOf(a), ElementsAre(1, 1));
  EXPECT_THAT(CopiesOf(b), ElementsAre(1, 1));
  // One name does not make two variables one.
  const Variable other = named("a");
  refused([&](Replica& replica,
              bool first) { return replica.Assign(first ? a : other, two); },
          "Assign(\"a\")", "another variable");
}

TEST_F(ReplicaTest, ScatterAddsTheRowsOfAllReplicas) {
  VariableOptions options;
  options.name = "table";
  options.initializer =
      Starting(Value::Of<float>(ElementType::kFloat32, {2, 1}, {0, 0}));
  options.aggregation = Aggregation::kMean;
  const Variable table = strategy_->Create(options).value();
  const auto scatter = [&](ScatterOp op) {
    return strategy_->Run([&](Replica& replica) {
      return replica.Scatter(
          op, table,
          {{replica.id()},
           Value::Of<float>(ElementType::kFloat32, {1, 1}, {4}),
           std::nullopt});
    });
  };
  EXPECT_THAT(scatter(ScatterOp::kAdd), IsOk());
  EXPECT_THAT(strategy_->Read(table)->Elements<float>(), ElementsAre(2, 2));
  EXPECT_THAT(scatter(ScatterOp::kMin),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(ReplicaTest, AScatterThatFailsInOneReplicaWritesNothing) {
  auto central = Strategy::Make({Kind::kCentral, 2, {}}).value();
  VariableOptions options;
  options.name = "table";
  options.initializer =
      Starting(Value::Of<float>(ElementType::kFloat32, {2, 1}, {0, 0}));
  options.aggregation = Aggregation::kSum;
  const Variable table = central->Create(options).value();
  EXPECT_THAT(central->Run([&](Replica& replica) {
    // The table has no row 2, which the second replica names.
    return replica.Scatter(
        ScatterOp::kAdd, table,
        {{replica.id() + 1},
         Value::Of<float>(ElementType::kFloat32, {1, 1}, {4}),
         std::nullopt});
  }),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(central->Read(table)->Elements<float>(), ElementsAre(0, 0));
}

TEST_F(ReplicaTest, AVariableIsCreatedOnceForAllReplicas) {
  const auto made = strategy_->Run([&](Replica& replica) {
    return replica.Create({"v", Starting(Number(1)), {}, {}, {}, {}});
  });
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->At(0), made->At(1));
  EXPECT_THAT(strategy_->Run([&](Replica& replica) {
    return replica.Create(
        {replica.id() == 0 ? "a" : "b", Starting(Number(1)), {}, {}, {}, {}});
  }),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ReplicaTest, AllReduceAndAllGatherReachEveryReplica) {
  const auto results = strategy_->Run(
      [](Replica& replica, const Value& mine) {
        EXPECT_EQ(*replica.AllReduce(ReduceOp::kSum, mine), Number(8));
        EXPECT_EQ(*replica.AllGather(mine.Reshaped({1}), 0),
                  Value::Of<float>(ElementType::kFloat32, {2}, {3, 5}));
      },
      Each(3, 5));
  EXPECT_THAT(results, IsOk());
}

TEST_F(ReplicaTest,
       ReplicasThatReduceOrGatherOtherwiseAreRefusedWithBothCalls) {
  const auto refused = [&](auto call, const std::string& first,
                           const std::string& second) {
    std::vector<absl::Status> ends(2);
    EXPECT_THAT(strategy_->Run([&](Replica& replica) {
      ends[replica.local()] = call(replica, replica.id() == 0);
    }),
                IsOk());
    for (const absl::Status& end : ends) {
      EXPECT_THAT(end, StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("replica 0 calls " + first),
                                      HasSubstr("replica 1 " + second))));
    }
  };
  refused(
      [](Replica& replica, bool first) {
        return replica
            .AllReduce(first ? ReduceOp::kSum : ReduceOp::kMean, Number(1))
            .status();
      },
      "AllReduce SUM of 1 value", "AllReduce MEAN of 1 value");
  refused(
      [](Replica& replica, bool first) {
        return replica
            .AllReduce(ReduceOp::kSum,
                       std::vector<Leaf>(first ? 1 : 2, Number(1)))
            .status();
      },
      "AllReduce SUM of 1 value", "AllReduce SUM of 2 values");
  refused(
      [](Replica& replica, bool first) {
        return replica.AllGather(Number(1).Reshaped({1, 1}), first ? 0 : 1)
            .status();
      },
      "AllGather along axis 0", "AllGather along axis 1");
}

// The other worker would wait for a call that does not come.
TEST_F(ReplicaTest, ReplicasThatDifferInOneWorkerAreRefusedInAll) {
  InTwoWorkers(2, [](Strategy& strategy, bool /*first*/) {
    // The last replica makes another call than the other three.
    const auto refused = [&](auto call, const std::string& other) {
      EXPECT_THAT(strategy.Run([&](Replica& replica) -> absl::Status {
        return call(replica, replica.id() == 3);
      }),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("local replica 1 " + other)));
    };
    refused(
        [](Replica& replica, bool last) {
          return replica
              .AllReduce(last ? ReduceOp::kMean : ReduceOp::kSum, Number(1))
              .status();
        },
        "AllReduce MEAN of 1 value");
    refused(
        [](Replica& replica, bool last) {
          return replica.AllGather(Number(1).Reshaped({1, 1}), last ? 1 : 0)
              .status();
        },
        "AllGather along axis 1");
    refused(
        [](Replica& replica, bool last) {
          return replica
              .Create({last ? "b" : "a", Starting(Number(1)), {}, {}, {}, {}})
              .status();
        },
        "Create(\"b\")");
  });
}

// Else their writes would be added up in one worker, and in none of the others.
TEST_F(ReplicaTest, VariablesThatDifferAreNotCreated) {
  const auto options_of = [](bool other) {
    VariableOptions options;
    options.name = "v";
    options.initializer = Starting(Number(1));
    options.aggregation = other ? Aggregation::kSum : Aggregation::kMean;
    return options;
  };
  EXPECT_THAT(strategy_->Run([&](Replica& replica) {
    return replica.Create(options_of(replica.id() == 1));
  }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("kOnWrite, kMean, trainable"),
                             HasSubstr("kOnWrite, kSum, trainable"))));
  InTwoWorkers(1, [&](Strategy& strategy, bool first) {
    EXPECT_THAT(strategy.Create(options_of(first)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("kMean, trainable at rank 1")));
    VariableOptions options = options_of(true);
    options.synchronization =
        first ? Synchronization::kOnWrite : Synchronization::kOnRead;
    EXPECT_THAT(strategy.Create(options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("kOnRead, kSum, not trainable at rank 1")));
    // The same variable, in other words.
    options = options_of(true);
    options.synchronization =
        first ? Synchronization::kAuto : Synchronization::kOnWrite;
    if (first) options.trainable = true;
    EXPECT_THAT(strategy.Create(options), IsOk());
  });
}

TEST_F(ReplicaTest, ReplicasThatUseVariablesOtherwiseAreRefusedInAllWorkers) {
  const auto refused = [](Synchronization synchronization, auto call,
                          const std::string& other) {
    InTwoWorkers(2, [&](Strategy& strategy, bool /*first*/) {
      VariableOptions options;
      options.name = "v";
      options.initializer =
          Starting(Value::Of<float>(ElementType::kFloat32, {1}, {0}));
      options.synchronization = synchronization;
      options.aggregation = Aggregation::kSum;
      const Variable v = strategy.Create(options).value();
      options.name = "u";
      const Variable u = strategy.Create(options).value();
      EXPECT_THAT(strategy.Run([&](Replica& replica) -> absl::Status {
        return call(replica, replica.id() == 3 ? u : v);
      }),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("local replica 1 " + other)));
    });
  };
  const Value one = Value::Of<float>(ElementType::kFloat32, {1}, {1});
  refused(
      Synchronization::kOnWrite,
      [&](Replica& replica, const Variable& variable) {
        return replica.AssignAdd(variable, one);
      },
      "AssignAdd(\"u\")");
  refused(
      Synchronization::kOnWrite,
      [&](Replica& replica, const Variable& variable) {
        return replica.Scatter(ScatterOp::kAdd, variable, {{0}, one, {}});
      },
      "ScatterAdd(\"u\")");
  refused(
      Synchronization::kOnRead,
      [](Replica& replica, const Variable& variable) {
        return replica.ReadAggregated(variable).status();
      },
      "ReadAggregated(\"u\")");
}

// Else the other worker would wait for a sum that this one does not begin.
TEST_F(ReplicaTest, AWriteThatOneReplicaCannotMakeFailsInAllWorkers) {
  InTwoWorkers(2, [](Strategy& strategy, bool /*first*/) {
    VariableOptions options;
    options.name = "v";
    options.initializer = Starting(Number(0));
    options.aggregation = Aggregation::kSum;
    const Variable v = strategy.Create(options).value();
    EXPECT_THAT(strategy.Run([&](Replica& replica) {
      return replica.Assign(
          v, replica.id() == 3 ? Number(1).Reshaped({1}) : Number(1));
    }),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the new value float32 [1]")));
    EXPECT_EQ(strategy.Read(v).value(), Number(0));
    EXPECT_THAT(strategy.Run([&](Replica& replica) {
      return replica.Assign(v, Number(1));
    }),
                IsOk());
    EXPECT_EQ(strategy.Read(v).value(), Number(4));
  });
}

// Nothing is exchanged, so the other worker has nothing to wait for.
TEST_F(ReplicaTest, ReplicasThatDifferInACallOfTheirWorkerFailThereAlone) {
  InTwoWorkers(2, [](Strategy& strategy, bool first) {
    VariableOptions options;
    options.name = "v";
    options.initializer = Starting(Number(0));
    options.aggregation = Aggregation::kOnlyFirstReplica;
    const Variable v = strategy.Create(options).value();
    options.name = "u";
    const Variable u = strategy.Create(options).value();
    const absl::Status done = strategy.Run([&](Replica& replica) {
      return replica.Assign(replica.id() == 3 ? u : v, Number(1));
    });
    EXPECT_EQ(done.ok(), first) << done;
    EXPECT_THAT(strategy.Reduce(ReduceOp::kSum, Number(1)), IsOk());
  });
}

}  // namespace
}  // namespace lockstep::strategy
