#include "strategy/variables/variable_store.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

VariableOptions Named(const std::string& name) {
  VariableOptions options;
  options.name = name;
  options.initializer = Starting(Value::Scalar(1));
  return options;
}

class VariableStoreTest : public ::testing::Test {
 protected:
  const Placement two_{{"cpu:0", "cpu:1"}};
  VariableStore mirrored_{Kind::kMirrored, two_};
  VariableStore central_{Kind::kCentral, two_};
};

TEST_F(VariableStoreTest, MirroredVariablesHaveACopyForEachReplica) {
  const Variable v = *mirrored_.Make(Named("v"), Value::Scalar(1));
  EXPECT_EQ(v.placement(), two_);
  EXPECT_EQ(mirrored_.CountOfCopies(v), 2u);
  EXPECT_EQ(mirrored_.CopyOfReplica(v, 1), 1u);
  EXPECT_THAT(mirrored_.Write(v, 1, Assignment::kAdd, Value::Scalar(4)),
              IsOk());
  EXPECT_EQ(mirrored_.ReadCopy(v, 0), Value::Scalar(1));
  EXPECT_EQ(mirrored_.ReadCopy(v, 1), Value::Scalar(5));
}

TEST_F(VariableStoreTest, CentralVariablesHaveOneCopyOnADeviceOfItsOwn) {
  VariableOptions options = Named("v");
  options.synchronization = Synchronization::kOnRead;
  const Variable v = *central_.Make(options, Value::Scalar(1));
  EXPECT_EQ(central_.CountOfCopies(v), 1u);
  EXPECT_EQ(central_.CopyOfReplica(v, 1), 0u);
  EXPECT_FALSE(central_.IsOnRead(v));
  EXPECT_NE(v.placement(), two_);
}

TEST_F(VariableStoreTest, AVariableKeepsTheKindOfItsStoreInTheDefaultOne) {
  const VariableStore plain(Kind::kDefault, {{"cpu:0"}});
  const VariableStore workers(Kind::kParameterServer, two_,
                              /*in_workers=*/true);
  VariableOptions options = Named("v");
  options.synchronization = Synchronization::kOnRead;
  const Variable own = *plain.Make(options, Value::Scalar(1));
  EXPECT_FALSE(plain.IsForeign(own));
  EXPECT_TRUE(plain.IsPlain(own));
  const Variable mirrored = *mirrored_.Make(options, Value::Scalar(1));
  EXPECT_TRUE(plain.Owns(mirrored) && plain.IsForeign(mirrored));
  EXPECT_TRUE(plain.IsOnRead(mirrored) && !plain.IsPlain(mirrored));
  EXPECT_FALSE(plain.IsOnRead(*central_.Make(options, Value::Scalar(1))));
  EXPECT_THAT(plain.CheckLocal(mirrored), IsOk());
  const Variable of_workers = *workers.Make(options, Value::Scalar(1));
  EXPECT_THAT(workers.CheckLocal(of_workers), IsOk());
  EXPECT_THAT(plain.CheckLocal(of_workers),
              StatusIs(kInvalid, HasSubstr("several workers")));
}

TEST_F(VariableStoreTest, ImpossibleVariablesAreRefused) {
  EXPECT_THAT(mirrored_.Check(Named("")), StatusIs(kInvalid));
  VariableOptions none = Named("v");
  none.synchronization = Synchronization::kNone;
  EXPECT_THAT(mirrored_.Check(none), StatusIs(kInvalid, HasSubstr("kNone")));
  VariableOptions mean = Named("v");
  mean.aggregation = Aggregation::kMean;
  const Value integer = Value::Of<int32_t>(ElementType::kInt32, {}, {1});
  EXPECT_THAT(mirrored_.Make(mean, integer),
              StatusIs(kInvalid, HasSubstr("no integer")));
  EXPECT_THAT(central_.Make(mean, integer), IsOk());
}

TEST_F(VariableStoreTest, VariablesOfBoolAreAssignedButNotAdded) {
  const Value no = Value::Of<uint8_t>(ElementType::kBool, {}, {0});
  const Value yes = Value::Of<uint8_t>(ElementType::kBool, {}, {1});
  const auto refused =
      StatusIs(kInvalid, HasSubstr("variable \"v\": bool cannot be added"));
  VariableOptions sum = Named("v");
  sum.aggregation = Aggregation::kSum;
  EXPECT_THAT(mirrored_.Make(sum, no), refused);
  const Variable v = *mirrored_.Make(Named("v"), no);
  EXPECT_THAT(mirrored_.Write(v, 0, Assignment::kAdd, yes), refused);
  EXPECT_THAT(mirrored_.Write(v, 0, Assignment::kAssign, yes), IsOk());
  EXPECT_EQ(mirrored_.ReadCopy(v, 0), yes);
}

TEST_F(VariableStoreTest, ColocatedVariablesShareTheirDevices) {
  const Variable v = *mirrored_.Make(Named("v"), Value::Scalar(1));
  VariableOptions slot = Named("v/slot");
  slot.colocate_with = v;
  EXPECT_EQ(mirrored_.PlacementOf(slot), v.placement());
  EXPECT_THAT(central_.Check(slot),
              StatusIs(kInvalid, HasSubstr("another strategy's")));
  slot.colocate_with = Placement{{"elsewhere"}};
  EXPECT_THAT(mirrored_.Check(slot), StatusIs(kInvalid));
}

TEST_F(VariableStoreTest, OnReadVariablesAreNotTrainedUnlessTheOptionsSaySo) {
  VariableOptions options = Named("v");
  EXPECT_TRUE(mirrored_.Make(options, Value::Scalar(1))->trainable());
  options.synchronization = Synchronization::kOnRead;
  EXPECT_FALSE(mirrored_.Make(options, Value::Scalar(1))->trainable());
  options.trainable = true;
  EXPECT_TRUE(mirrored_.Make(options, Value::Scalar(1))->trainable());
}

TEST_F(VariableStoreTest, CallsAreNamedWithTheirVariable) {
  const Variable v = *mirrored_.Make(Named("v\xff"), Value::Scalar(1));
  EXPECT_EQ(CallOf(Assignment::kAdd, v), "AssignAdd(\"v\\xff\")");
  EXPECT_EQ(CallOf(ScatterOp::kMax, v), "ScatterMax(\"v\\xff\")");
  EXPECT_EQ(CallOf("Read", "w"), "Read(\"w\")");
}

TEST_F(VariableStoreTest, AValueThatDoesNotFitIsRefused) {
  const Variable v = *mirrored_.Make(Named("v"), Value::Scalar(1));
  const Value row = Value::Of<float>(ElementType::kFloat32, {1}, {1});
  EXPECT_THAT(mirrored_.Write(v, 0, Assignment::kAssign, row),
              StatusIs(kInvalid, HasSubstr("float32 [1]")));
  EXPECT_THAT(central_.Write(v, 0, Assignment::kAssign, Value::Scalar(2)),
              StatusIs(kInvalid));
  const Value none = Value::Of<float>(ElementType::kFloat32, {}, {});
  const auto refused =
      StatusIs(kInvalid, HasSubstr("a value of shape [] has 0 elements"));
  EXPECT_THAT(mirrored_.Write(v, 0, Assignment::kAdd, none), refused);
  EXPECT_THAT(mirrored_.Make(Named("w"), none), refused);
  EXPECT_EQ(mirrored_.ReadCopy(v, 0), Value::Scalar(1));
}

}  // namespace
}  // namespace lockstep::strategy
