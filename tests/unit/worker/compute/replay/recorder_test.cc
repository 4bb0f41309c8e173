#include "worker/compute/replay/recorder.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/cpu/cpu_backend.h"
#include "worker/compute/replay/recording.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using Action = RecordingPlan::Action;

RecordingKey KeyOf(const void* address, const Shape& shape = {1},
                   ElementType type = ElementType::kFloat32) {
  RecordingKey key;
  key.Add(ConstTensor(type, shape, address));
  return key;
}

const int kHere = 0;
const int kThere = 0;

TEST(RecordingKeyTest, TypeShapeAndAddressTellPassesApart) {
  const RecordingKey key = KeyOf(&kHere);

  EXPECT_TRUE(key == KeyOf(&kHere));
  EXPECT_FALSE(key == KeyOf(&kThere));
  EXPECT_FALSE(key == KeyOf(&kHere, {1, 1}));
  EXPECT_FALSE(key == KeyOf(&kHere, {1}, ElementType::kInt32));
  EXPECT_FALSE(key == RecordingKey());
}

class RecordingPlanTest : public ::testing::Test {
 protected:
  const RecordingKey key_ = KeyOf(&kHere);
  const RecordingKey other_ = KeyOf(&kThere);
  RecordingPlan plan_;
};

TEST_F(RecordingPlanTest, FirstPassIsLaunchedAndTheSecondRecorded) {
  EXPECT_EQ(plan_.Next(key_, 1), Action::kLaunch);
  plan_.Launched(key_, 2);
  EXPECT_EQ(plan_.Next(key_, 2), Action::kRecord);
  plan_.Recorded(key_, 2);
  EXPECT_EQ(plan_.Next(key_, 2), Action::kReplay);
}

TEST_F(RecordingPlanTest, MemoryThatMayHaveMovedMakesARecordingWorthless) {
  plan_.Recorded(key_, 2);

  EXPECT_EQ(plan_.Next(key_, 3), Action::kLaunch);
}

TEST_F(RecordingPlanTest, PassIsNotRecordedBeforeItsMemoryIsThere) {
  plan_.Launched(key_, 2);

  EXPECT_EQ(plan_.Next(key_, 3), Action::kLaunch);
}

TEST_F(RecordingPlanTest, AnotherKeyIsLaunched) {
  plan_.Recorded(key_, 2);

  EXPECT_EQ(plan_.Next(other_, 2), Action::kLaunch);
}

TEST_F(RecordingPlanTest, PassesThatTakeTurnsDoNotDriveEachOtherOut) {
  plan_.Recorded(key_, 2);
  plan_.Launched(other_, 2);
  EXPECT_EQ(plan_.Next(key_, 2), Action::kReplay);
  plan_.Replayed();

  EXPECT_EQ(plan_.Next(other_, 2), Action::kLaunch);
}

TEST_F(RecordingPlanTest, AnotherKeyTwiceIsTheNewRecording) {
  plan_.Recorded(key_, 2);
  plan_.Launched(other_, 2);
  EXPECT_EQ(plan_.Next(other_, 2), Action::kRecord);
  plan_.Recorded(other_, 2);

  EXPECT_EQ(plan_.Next(key_, 2), Action::kLaunch);
}

// Counts what it is asked for. While it records, calls are not counted as run.
class CountingBackend : public CpuBackend, private RecordingDevice {
 public:
  CountingBackend() = default;
  RecordingDevice* recording_device() override { return this; }

  absl::Status Call() {
    ++(recording ? recorded : run);
    return absl::OkStatus();
  }

  bool recording = false;
  int recorded = 0;
  int run = 0;
  int replayed = 0;
  uint64_t memory = 1;
  absl::Status begin = absl::OkStatus();
  absl::Status end = absl::OkStatus();

 private:
  class Replayer : public Recording {
   public:
    explicit Replayer(int& count) : count_(count) {}
    absl::Status Replay() override {
      ++count_;
      return absl::OkStatus();
    }

   private:
    int& count_;
  };

  uint64_t generation() const override { return memory; }
  absl::Status BeginRecording() override {
    recording = begin.ok();
    return begin;
  }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override {
    recording = false;
    if (!end.ok()) return end;
    return std::make_unique<Replayer>(replayed);
  }
};

class RecorderTest : public ::testing::Test {
 protected:
  absl::Status Run() {
    return recorder_.Run(KeyOf(&kHere), [this] { return backend_.Call(); });
  }

  CountingBackend backend_;
  Recorder recorder_{backend_};
};

TEST_F(RecorderTest, EachPassRunsOnceHoweverThatIs) {
  for (int pass = 0; pass < 4; ++pass) ASSERT_OK(Run());

  EXPECT_EQ(backend_.run, 1);
  EXPECT_EQ(backend_.recorded, 1);
  EXPECT_EQ(backend_.replayed, 3);
  EXPECT_EQ(recorder_.replays(), 3);
}

TEST_F(RecorderTest, NewMemoryIsRecordedAnew) {
  for (int pass = 0; pass < 3; ++pass) ASSERT_OK(Run());
  ++backend_.memory;

  ASSERT_OK(Run());
  EXPECT_EQ(backend_.run, 2);
  ASSERT_OK(Run());

  EXPECT_EQ(backend_.recorded, 2);
}

TEST_F(RecorderTest, BackendThatCannotRecordRunsAll) {
  const std::unique_ptr<CpuBackend> cpu = *CpuBackend::Make({});
  Recorder recorder(*cpu);
  int calls = 0;
  for (int pass = 0; pass < 3; ++pass) {
    ASSERT_OK(recorder.Run(KeyOf(&kHere), [&] {
      ++calls;
      return absl::OkStatus();
    }));
  }

  EXPECT_EQ(calls, 3);
  EXPECT_EQ(recorder.replays(), 0);
}

TEST_F(RecorderTest, PassesThatCannotBeRecordedAreLaunchedAndThatIsToldOnce) {
  for (absl::Status* failing : {&backend_.begin, &backend_.end}) {
    *failing = absl::InternalError("no tape");
    Recorder recorder(backend_);
    const int before = backend_.run;
    for (int pass = 0; pass < 4; ++pass) {
      ASSERT_OK(recorder.Run(KeyOf(&kHere), [&] { return backend_.Call(); }));
    }

    EXPECT_EQ(backend_.run - before, 4);
    EXPECT_FALSE(backend_.recording);
    EXPECT_THAT(recorder.TakeFailure(),
                StatusIs(absl::StatusCode::kInternal, "no tape"));
    EXPECT_OK(recorder.TakeFailure());
    *failing = absl::OkStatus();
  }
}

TEST_F(RecorderTest, FailureOfTheOperationsIsReturnedAndEndsTheRecording) {
  ASSERT_OK(Run());
  const absl::Status wrong = absl::InvalidArgumentError("wrong shape");

  EXPECT_EQ(recorder_.Run(KeyOf(&kHere), [&] { return wrong; }), wrong);

  EXPECT_FALSE(backend_.recording);
  ASSERT_OK(Run());
  EXPECT_EQ(backend_.run, 2);
}

}  // namespace
}  // namespace lockstep::worker
