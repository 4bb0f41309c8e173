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
    EXPECT_EQ(CopiesOf(s, v).back(),
              static_cast<float>(s.first_replica() + s.local_replicas() - 1));
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

TEST_P(VariableCases, Case85And90ReadingInAReplicaAndForcedTogether) {
  Each([&](Strategy& s) {
    const Variable v =
        s.Create(Named("v", Number(1), kOnRead, Aggregation::kSum)).value();
    const auto read =
        s.Run([&](Replica& replica) { return replica.ReadAggregated(v); });
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(read->At(0), Number(n()));
    EXPECT_EQ(s.Run([&](Replica& replica) { return replica.Read(v); })->At(0),
              Number(1));
  });
}

TEST_P(VariableCases, Case86And87SavedValuesAreThoseReadAcrossReplicas) {
  Each([&](Strategy& s) {
    for (const Aggregation aggregation :
         {Aggregation::kSum, Aggregation::kMean}) {
      const Variable v =
          s.Create(Named("v", Number(0), kOnRead, aggregation)).value();
      EXPECT_THAT(AssignIds(s, v), IsOk());
      const Value saved = s.Read(v).value();
      EXPECT_THAT(s.Assign(v, saved), IsOk());
      const float share = aggregation == Aggregation::kSum
                              ? (n() - 1) / 2
                              : saved.Elements<float>()[0];
      EXPECT_THAT(CopiesOf(s, v), ::testing::Each(share));
      EXPECT_THAT(s.Read(v), IsOkAndHolds(saved));
    }
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
    EXPECT_EQ(CopiesOf(s, v).back(),
              static_cast<float>(s.first_replica() + s.local_replicas() - 1));
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
