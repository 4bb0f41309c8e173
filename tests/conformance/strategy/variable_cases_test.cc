// Cases 75 to 94: variables.

#include "tests/conformance/strategy/fleet.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kOnRead = Synchronization::kOnRead;
constexpr auto kOnWrite = Synchronization::kOnWrite;

class VariableCases : public CaseTest {
 protected:
  // The numbers of the replicas of a worker.
  static std::vector<float> IdsOf(const Strategy& s) {
    std::vector<float> ids;
    for (int r = 0; r < s.local_replicas(); ++r) {
      ids.push_back(static_cast<float>(s.first_replica() + r));
    }
    return ids;
  }
  // Each replica assigns its number.
  static absl::Status AssignIds(Strategy& s, const Variable& v) {
    return s.Run([&](Replica& replica) {
      return replica.Assign(v, Number(static_cast<float>(replica.id())));
    });
  }
};

TEST_P(VariableCases, Case75TheAggregationOfAWriteInReplicas) {
  Each([&](Strategy& s) {
    const auto written = [&](Aggregation aggregation) {
      const Variable v =
          s.Create(Named("v", Number(0), kOnWrite, aggregation)).value();
      EXPECT_THAT(
          s.Run([&](Replica& replica) { return replica.Assign(v, Number(2)); }),
          IsOk());
      return CopiesOf(s, v);
    };
    EXPECT_THAT(written(Aggregation::kSum), ::testing::Each(2 * n()));
    EXPECT_THAT(written(Aggregation::kMean), ::testing::Each(2));
    EXPECT_THAT(written(Aggregation::kOnlyFirstReplica), ::testing::Each(2));
  });
}

// As in TensorFlow 2.21, the first replica of each worker.
TEST_P(VariableCases, Case76OnlyTheFirstReplicaOfAWorkerIsHeard) {
  Each([&](Strategy& s) {
    const Variable v = s.Create(Named("v", Number(15), kOnWrite,
                                      Aggregation::kOnlyFirstReplica))
                           .value();
    EXPECT_THAT(AssignIds(s, v), IsOk());
    EXPECT_THAT(CopiesOf(s, v),
                ::testing::Each(static_cast<float>(s.first_replica())));
  });
}

TEST_P(VariableCases, Case77And78AllCopiesAreWrittenAcrossReplicas) {
  Each([&](Strategy& s) {
    const Variable v = s.Create(Named("v", Number(5))).value();
    EXPECT_THAT(s.Assign(v, Number(3)), IsOk());
    EXPECT_THAT(CopiesOf(s, v), ::testing::Each(3));
    EXPECT_THAT(s.Across([&](Cross& cross) {
      return cross.Update(v, [](Copy& copy) { return copy.Assign(Number(1)); });
    }),
                IsOk());
    EXPECT_THAT(CopiesOf(s, v), ::testing::Each(1));
  });
}

// As in TensorFlow 2.21, where the list's documents say that it is an error.
TEST_P(VariableCases, Case79WithoutAnAggregationTheOwnCopyIsWritten) {
  Each([&](Strategy& s) {
    const Variable v = s.Create(Named("v", Number(5))).value();
    EXPECT_THAT(AssignIds(s, v), IsOk());
    EXPECT_EQ(CopiesOf(s, v), IdsOf(s));
  });
}

TEST_P(VariableCases, Case80And89ImpossibleVariablesAreRefused) {
  Each([&](Strategy& s) {
    const auto mean =
        s.Create(Named("v", Int(1), kOnWrite, Aggregation::kMean));
    const auto none = s.Create(
        Named("v", Number(1), Synchronization::kNone, Aggregation::kNone));
    if (s.kind() == Kind::kOneDevice) {  // a plain variable
      EXPECT_THAT(mean, IsOk());
      EXPECT_THAT(none, IsOk());
    } else {
      EXPECT_THAT(mean, StatusIs(kInvalid));
      EXPECT_THAT(none, StatusIs(kInvalid));
    }
  });
}

TEST_P(VariableCases, Case81And82OnReadVariablesAreReadAcrossReplicas) {
  Each([&](Strategy& s) {
    const auto read = [&](Aggregation aggregation) {
      const Variable v =
          s.Create(Named("v", Number(0), kOnRead, aggregation)).value();
      EXPECT_THAT(AssignIds(s, v), IsOk());
      return s.Read(v);
    };
    EXPECT_THAT(read(Aggregation::kSum),
                IsOkAndHolds(Number(n() * (n() - 1) / 2)));
    EXPECT_THAT(read(Aggregation::kMean), IsOkAndHolds(Number((n() - 1) / 2)));
    // The first copy of each worker, as in TensorFlow.
    EXPECT_THAT(read(Aggregation::kOnlyFirstReplica),
                IsOkAndHolds(Number(static_cast<float>(s.first_replica()))));
    if (!one()) {
      EXPECT_THAT(read(Aggregation::kNone), StatusIs(kInvalid));
    }
  });
}

TEST_P(VariableCases, Case83And84ASumIsSharedOutAndNotAddedTo) {
  Each([&](Strategy& s) {
    const Variable v =
        s.Create(Named("v", Number(0), kOnRead, Aggregation::kSum)).value();
    EXPECT_THAT(s.Assign(v, Number(n())), IsOk());
    EXPECT_THAT(CopiesOf(s, v), ::testing::Each(1));
    if (one()) return;
    for (const bool add : {true, false}) {
      EXPECT_THAT(s.Across([&](Cross& cross) {
        return add ? cross.AssignAdd(v, Number(1))
                   : cross.AssignSub(v, Number(1));
      }),
                  StatusIs(kInvalid));
    }
  });
}

TEST_P(VariableCases, Case85AMeanIsReadAcrossReplicasAndACopyInThem) {
  Each([&](Strategy& s) {
    const Variable v =
        s.Create(Named("v", Number(0), kOnRead, Aggregation::kMean)).value();
    EXPECT_THAT(AssignIds(s, v), IsOk());
    const auto across = s.Across([&](Cross& cross) -> absl::StatusOr<float> {
      const auto read = cross.Read(v);
      if (!read.ok()) return read.status();
      return read->Elements<float>()[0] + 1;
    });
    EXPECT_THAT(across, IsOkAndHolds((n() - 1) / 2 + 1));
    const auto inside = s.Run([&](Replica& replica) -> absl::StatusOr<float> {
      const auto read = replica.Read(v);
      if (!read.ok()) return read.status();
      return read->Elements<float>()[0] + 1;
    });
    ASSERT_THAT(inside, IsOk());
    for (int r = 0; r < s.local_replicas(); ++r) {
      EXPECT_EQ(inside->At(static_cast<size_t>(r)),
                static_cast<float>(s.first_replica() + r + 1));
    }
  });
}

TEST_P(VariableCases, Case90ReadingInAReplicaAndForcedTogether) {
  Each([&](Strategy& s) {
    const Variable v =
        s.Create(Named("v", Number(1), kOnRead, Aggregation::kSum)).value();
    const auto read =
        s.Run([&](Replica& replica) { return replica.ReadAggregated(v); });
    ASSERT_THAT(read, IsOk());
    EXPECT_THAT(read->local(), ::testing::Each(Number(n())));
    const auto own = s.Run([&](Replica& replica) { return replica.Read(v); });
    ASSERT_THAT(own, IsOk());
    EXPECT_THAT(own->local(), ::testing::Each(Number(1)));
  });
}

// The copies are 4, 3, ...; what a checkpoint has of them is restored into
// another such variable, and into a plain one.
TEST_P(VariableCases, Case86SavedValuesAreThoseReadAcrossReplicas) {
  Each([&](Strategy& s) {
    const auto plain = Strategy::Make({Kind::kOneDevice, 1, {}}).value();
    const float sum = 4 * n() - n() * (n() - 1) / 2;
    for (const Aggregation aggregation :
         {Aggregation::kSum, Aggregation::kMean}) {
      const auto made = [&](const char* name) {
        return s.Create(Named(name, Number(0), kOnRead, aggregation)).value();
      };
      const Variable v = made("v");
      EXPECT_THAT(s.Run([&](Replica& replica) {
        return replica.Assign(v, Number(4 - static_cast<float>(replica.id())));
      }),
                  IsOk());
      const Value saved = s.Read(v).value();
      EXPECT_EQ(saved,
                Number(aggregation == Aggregation::kSum ? sum : sum / n()));
      const Variable restored = made("restored");
      EXPECT_THAT(s.Assign(restored, saved), IsOk());
      EXPECT_THAT(CopiesOf(s, restored), ::testing::Each(sum / n()));
      EXPECT_THAT(s.Read(restored), IsOkAndHolds(saved));
      const Variable alone = plain->Create("alone", Number(0)).value();
      EXPECT_THAT(plain->Assign(alone, saved), IsOk());
      EXPECT_THAT(plain->Read(alone), IsOkAndHolds(saved));
    }
  });
}

TEST_P(VariableCases, Case87APlainValueIsSharedOutOrRepeated) {
  Each([&](Strategy& s) {
    const auto plain = Strategy::Make({Kind::kOneDevice, 1, {}}).value();
    const Variable alone = plain->Create("alone", Number(2)).value();
    const Value saved = plain->Read(alone).value();
    const auto restored = [&](Aggregation aggregation) {
      const Variable v =
          s.Create(Named("v", Number(0), kOnRead, aggregation)).value();
      EXPECT_THAT(s.Assign(v, saved), IsOk());
      return CopiesOf(s, v);
    };
    EXPECT_THAT(restored(Aggregation::kSum), ::testing::Each(2 / n()));
    EXPECT_THAT(restored(Aggregation::kMean), ::testing::Each(2));
  });
}

TEST_P(VariableCases, Case88TrainableByDefault) {
  Each([&](Strategy& s) {
    EXPECT_TRUE(s.Create(Named("v", Number(1)))->trainable());
    VariableOptions options = Named("v", Number(1), kOnRead, Aggregation::kSum);
    EXPECT_FALSE(s.Create(options)->trainable());
    options.trainable = true;
    EXPECT_TRUE(s.Create(options)->trainable());
  });
}

// TensorFlow's servers have one copy of z, which 3 workers make 33. Here the
// workers have copies of their own, and served_cases_test.cc has variables that
// lie on servers.
TEST_P(VariableCases, Case91EachReplicaAddsOne) {
  Each([&](Strategy& s) {
    const auto plus_one = [&](float initial, Aggregation aggregation) {
      const Variable v =
          s.Create(Named("v", Number(initial), kOnWrite, aggregation)).value();
      EXPECT_THAT(s.Run([&](Replica& replica) {
        return replica.AssignAdd(v, Number(1));
      }),
                  IsOk());
      return CopiesOf(s, v);
    };
    EXPECT_THAT(plus_one(10, Aggregation::kSum), ::testing::Each(10 + n()));
    EXPECT_THAT(plus_one(30, Aggregation::kOnlyFirstReplica),
                ::testing::Each(31));
  });
}

// As in TensorFlow 2.21: component i for copy i.
TEST_P(VariableCases, Case92AnUpdateTakesAComponentForEachCopy) {
  Each([&](Strategy& s) {
    const Variable v = s.Create(Named("v", Number(0))).value();
    EXPECT_THAT(s.Across([&](Cross& cross) {
      return cross.Update(
          v, [](Copy& copy, const Value& mine) { return copy.Assign(mine); },
          Values(s, [](int id) { return Number(static_cast<float>(id)); }));
    }),
                IsOk());
    EXPECT_EQ(CopiesOf(s, v), IdsOf(s));
  });
}

TEST_P(VariableCases, Case93ScatterOfMinima) {
  Each([&](Strategy& s) {
    const Slices rows{{1}, Row({1}), std::nullopt};
    const auto scatter = [&](const Variable& v) {
      return s.Run([&](Replica& replica) {
        return replica.Scatter(ScatterOp::kMin, v, rows);
      });
    };
    const Variable first = s.Create(Named("v", Row({0, 2, 0}), kOnWrite,
                                          Aggregation::kOnlyFirstReplica))
                               .value();
    EXPECT_THAT(scatter(first), IsOk());
    EXPECT_THAT(s.Read(first)->Elements<float>(), ElementsAre(0, 1, 0));
    const Variable sum =
        s.Create(Named("v", Row({0, 2, 0}), kOnWrite, Aggregation::kSum))
            .value();
    EXPECT_THAT(scatter(sum), one()
                                  ? StatusIs(absl::StatusCode::kOk)
                                  : StatusIs(absl::StatusCode::kUnimplemented));
  });
}

TEST_P(VariableCases, Case94InitialValuesAreThoseOfWorker0) {
  Each([&](Strategy& s) {
    const float offered = 0.1f + static_cast<float>(s.worker());
    const Variable v = s.Create(Named("v", Number(offered))).value();
    EXPECT_THAT(CopiesOf(s, v), ::testing::Each(0.1f));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, VariableCases,
                         ::testing::ValuesIn(AllShapes()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace lockstep::strategy
