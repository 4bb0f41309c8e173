#include "chief/checkpoint/checkpoint_transfer.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/chief/checkpoint/checkpoint_transfer_fixture.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Stop(int64_t, int64_t) { return absl::CancelledError("stop"); }

using CheckpointTransferTest = CheckpointTransferFixture;

TEST_F(CheckpointTransferTest, RestoresOntoAnyNumberOfServers) {
  for (int from : {1, 2, 3}) {
    Cluster saved = MakeCluster(from);
    Load(saved, SampleState());
    ASSERT_OK(Save(saved, from));
    const auto checkpoint = store_.Open(from);
    ASSERT_OK(checkpoint);
    for (int to : {1, 2, 3, 7}) {
      Cluster restored = MakeCluster(to);

      const auto scalars =
          RestoreCheckpoint(*checkpoint, restored.map, restored.Access());

      EXPECT_THAT(scalars, IsOkAndHolds(ElementsAre(0.25f, 0.5f)));
      EXPECT_EQ(Unload(restored), SampleState()) << from << " to " << to;
    }
  }
}

TEST_F(CheckpointTransferTest, ServersAreWrittenToAtOnce) {
  const CheckpointReader checkpoint = Sample();
  Cluster cluster = MakeCluster(2);
  absl::Notification begun[2];
  std::atomic_flag first[2] = {ATOMIC_FLAG_INIT, ATOMIC_FLAG_INIT};
  std::atomic<int> alone = 0;
  for (int server : {0, 1}) {
    cluster.shards[server]->OnWrite([&, server] {
      if (first[server].test_and_set()) return absl::OkStatus();
      begun[server].Notify();
      // Each server's first write ends once the other's has begun.
      if (!begun[1 - server].WaitForNotificationWithTimeout(
              absl::Seconds(20))) {
        ++alone;
      }
      return absl::OkStatus();
    });
  }

  EXPECT_OK(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()));

  EXPECT_EQ(alone, 0);
  EXPECT_EQ(Unload(cluster), SampleState());
}

TEST_F(CheckpointTransferTest, SaysHowMuchHasBeenTransferred) {
  std::vector<int64_t> reports;
  int64_t whole = 0;
  const auto report = [&](int64_t done, int64_t total) {
    reports.push_back(done);
    whole = total;
    return absl::OkStatus();
  };
  const CheckpointReader checkpoint = Sample();
  Cluster cluster = MakeCluster(2);

  // Other threads may transfer the rest before this one reports again.
  EXPECT_OK(
      RestoreCheckpoint(checkpoint, cluster.map, cluster.Access(), report));

  EXPECT_EQ(reports.at(0), 0);
  EXPECT_LE(reports.back(), whole);
  EXPECT_EQ(std::adjacent_find(reports.begin(), reports.end(),
                               std::greater_equal<>()),
            reports.end());
  reports.clear();
  EXPECT_OK(SaveCheckpoint(store_, MakeManifest(9), cluster.map,
                           {{0.25f, 0.5f}}, cluster.Access(), report));
  EXPECT_EQ(reports.at(0), 0);
  EXPECT_EQ(reports.back(), whole);
}

TEST_F(CheckpointTransferTest, AnErrorOfTheReportEndsTheSave) {
  Cluster cluster = MakeCluster(2);
  Load(cluster, SampleState());
  EXPECT_THAT(SaveCheckpoint(store_, MakeManifest(9), cluster.map,
                             {{0.25f, 0.5f}}, cluster.Access(), Stop),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(store_.Open(9), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointTransferTest, FailedWriteEndsTheRestore) {
  const CheckpointReader checkpoint = Sample();
  for (int server : {0, 1}) {
    Cluster cluster = MakeCluster(2);
    cluster.shards[server]->OnWrite(
        [] { return absl::UnavailableError("server is gone"); });

    EXPECT_THAT(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()),
                StatusIs(absl::StatusCode::kUnavailable));
  }
}

TEST_F(CheckpointTransferTest, CheckpointHoldsWholeVariablesUnderTheirNames) {
  const CheckpointReader checkpoint = Sample();

  for (const VariableSpec& variable : variables_) {
    EXPECT_OK(checkpoint.CheckVariable(variable));
    EXPECT_NE(checkpoint.optimizer().Find(variable.name + "/Adam"), nullptr);
    EXPECT_NE(checkpoint.optimizer().Find(variable.name + "/Adam_1"), nullptr);
  }
  EXPECT_THAT(checkpoint.ReadInt64("global_step"), IsOkAndHolds(7));
  EXPECT_EQ(checkpoint.manifest().global_step, 7);
  EXPECT_OK(store_.Verify(7));
}

TEST_F(CheckpointTransferTest, OptimizerWithoutSlotsHasOnlyTheStep) {
  slots_.clear();
  scalars_.clear();
  Cluster cluster = MakeCluster(2);
  ASSERT_OK(SaveCheckpoint(store_, MakeManifest(3), cluster.map, {},
                           cluster.Access()));

  const auto checkpoint = store_.Open(3);

  ASSERT_OK(checkpoint);
  EXPECT_EQ(checkpoint->optimizer().header().tensors.size(), 1u);
  EXPECT_THAT(RestoreCheckpoint(*checkpoint, cluster.map, cluster.Access()),
              IsOkAndHolds(::testing::IsEmpty()));
}

TEST_F(CheckpointTransferTest, FailedSaveLeavesNoCheckpoint) {
  Cluster cluster = MakeCluster(2);
  cluster.shards[1]->FailReads(absl::UnavailableError("server is gone"));

  EXPECT_THAT(Save(cluster, 7), StatusIs(absl::StatusCode::kUnavailable));

  EXPECT_THAT(store_.Open(7), StatusIs(absl::StatusCode::kNotFound));
  cluster.shards[1]->FailReads(absl::OkStatus());
  EXPECT_OK(Save(cluster, 7));
}

TEST_F(CheckpointTransferTest, OnlyErrorsOfTheVolumeNameTheDirectory) {
  Cluster cluster = MakeCluster(1);
  ASSERT_OK(Save(cluster, 7));
  EXPECT_THAT(Save(cluster, 7), StatusIs(absl::StatusCode::kAlreadyExists,
                                         HasSubstr("checkpoint.directory: ")));

  const absl::Status full = absl::ResourceExhaustedError("no memory");
  cluster.shards[0]->FailReads(full);
  EXPECT_EQ(Save(cluster, 8), full);
}

TEST_F(CheckpointTransferTest, ReplacedChiefCompletesNoCheckpoint) {
  Cluster cluster = MakeCluster(1);
  cluster.shards[0]->BeTakenOverWhenRead();

  EXPECT_THAT(Save(cluster, 7), StatusIs(absl::StatusCode::kAborted));

  EXPECT_THAT(store_.Open(7), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointTransferTest, SaveNeedsAValueForEveryScalar) {
  Cluster cluster = MakeCluster(1);

  for (const std::vector<float>& scalars :
       std::vector<std::vector<float>>{{}, {1}, {1, 2, 3}}) {
    EXPECT_THAT(
        SaveCheckpoint(store_, MakeManifest(7), cluster.map, {scalars},
                       cluster.Access()),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("for 2 names")));
  }
  EXPECT_THAT(store_.Open(7), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointTransferTest, StepIsSavedOnce) {
  Sample();
  Cluster cluster = MakeCluster(1);

  EXPECT_THAT(Save(cluster, 7), StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(CheckpointTransferTest, CheckpointMayHoldMoreThanTheJobWants) {
  const CheckpointReader checkpoint = Sample();
  const State sample = SampleState();
  variables_.pop_back();
  slots_.pop_back();
  Cluster cluster = MakeCluster(2);

  EXPECT_OK(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()));

  const State restored = Unload(cluster);
  for (int variable : {0, 1}) {
    for (int tensor : {0, 1}) {
      EXPECT_EQ(restored[variable][tensor], sample[variable][tensor]);
    }
  }
}

TEST_F(CheckpointTransferTest, AveragesBeginAtTheInitialValues) {
  auto file = SafetensorsWriter::Create(
      temp_dir_.Join("values"), {{"layer1/w", TensorType::kF32, {4, 2}}}, {});
  ASSERT_OK(file);
  const Tensor values = SampleState()[0][0];
  ASSERT_OK((*file)->WriteAt("layer1/w", 0, values));
  ASSERT_OK((*file)->Finish());
  const auto reader = SafetensorsReader::Open((*file)->path());
  ASSERT_OK(reader);
  slots_ = {"Adam", "ExponentialMovingAverage"};
  Cluster cluster = MakeCluster(2);

  EXPECT_THAT(WriteInitialValues(*reader, cluster.map, cluster.Access(), Stop),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(cluster.writes(), 0);
  EXPECT_THAT(WriteInitialValues(*reader, cluster.map, cluster.Access()),
              IsOkAndHolds(1));

  State expected = EmptyState();
  expected[0] = {values, expected[0][1], values};
  EXPECT_EQ(Unload(cluster), expected);
}

}  // namespace
}  // namespace lockstep::chief
