#include "chief/checkpoint/checkpoint_transfer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "chief/plan/placement.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensor = std::vector<char>;  // of a whole variable
// By variable, then value and slots.
using State = std::vector<std::vector<Tensor>>;

absl::Status Stop(int64_t, int64_t) { return absl::CancelledError("stop"); }

// A server in memory: the parts that a plan gives it, of zeros at first.
class FakeShard final : public ShardAccess {
 public:
  FakeShard(const StateMap& map, int server) {
    for (const Part& part : map.plan.parts) {
      if (part.server != server) continue;
      const VariableSpec& variable = map.plan.variables[part.variable];
      parts_.push_back(part);
      bytes_.emplace_back(1 + map.slots[part.variable].size(),
                          Tensor(part.count * ElementSize(variable.dtype)));
    }
  }

  absl::Status ReadSnapshot(const ElementRange& range,
                            absl::Span<char> bytes) override {
    if (!failure_.ok()) return failure_;
    if (read_ >= fail_after_)
      return absl::AbortedError("a newer chief is here");
    read_ += bytes.size();
    const size_t size = ElementSizeOf(range.part);
    const Tensor& from = bytes_.at(range.part).at(range.tensor);
    if (bytes.size() != range.count * size ||
        (range.first + range.count) * size > from.size()) {
      return absl::InternalError("not in the part");
    }
    std::memcpy(bytes.data(), &from[range.first * size], bytes.size());
    return absl::OkStatus();
  }
  absl::Status WriteParts(const ElementRange& range,
                          absl::Span<const char> bytes) override {
    ++writes_;
    if (on_write_) LOCKSTEP_RETURN_IF_ERROR(on_write_());
    const size_t size = ElementSizeOf(range.part);
    Tensor& to = bytes_.at(range.part).at(range.tensor);
    if (bytes.size() != range.count * size ||
        (range.first + range.count) * size > to.size()) {
      return absl::InternalError("not in the part");
    }
    std::memcpy(&to[range.first * size], bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  absl::Status ReadKeys(int, int64_t, absl::Span<int64_t>) override {
    return absl::InternalError("no table grows");
  }
  absl::Status WriteRows(int, int, absl::Span<const int64_t>,
                         absl::Span<const char>) override {
    return absl::InternalError("no table grows");
  }

  // Copies between whole variables and the parts here.
  void Exchange(const StateMap& map, State& state, bool to_here) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const size_t element =
          ElementSize(map.plan.variables[part.variable].dtype);
      for (size_t tensor = 0; tensor < bytes_[i].size(); ++tensor) {
        Tensor& here = bytes_[i][tensor];
        char* there =
            state[part.variable][tensor].data() + part.offset * element;
        std::memcpy(to_here ? here.data() : there,
                    to_here ? there : here.data(), here.size());
      }
    }
  }

  void FailReads(const absl::Status& failure) { failure_ = failure; }
  // From when everything has been read once.
  void BeTakenOverWhenRead() {
    fail_after_ = 0;
    for (const std::vector<Tensor>& tensors : bytes_) {
      for (const Tensor& tensor : tensors) fail_after_ += tensor.size();
    }
  }
  void OnWrite(std::function<absl::Status()> on_write) {
    on_write_ = std::move(on_write);
  }
  int writes() const { return writes_; }

 private:
  size_t ElementSizeOf(int part) const {
    return bytes_.at(part).at(0).size() / parts_.at(part).count;
  }

  std::vector<Part> parts_;
  std::vector<std::vector<Tensor>> bytes_;  // by part, then tensor
  absl::Status failure_;
  size_t read_ = 0;  // bytes
  size_t fail_after_ = std::numeric_limits<size_t>::max();
  std::function<absl::Status()> on_write_;
  std::atomic<int> writes_ = 0;
};

struct Cluster {
  StateMap map;
  std::vector<std::unique_ptr<FakeShard>> shards;

  std::vector<ShardAccess*> Access() const {
    std::vector<ShardAccess*> access;
    for (const auto& shard : shards) access.push_back(shard.get());
    return access;
  }
  int writes() const {
    int writes = 0;
    for (const auto& shard : shards) writes += shard->writes();
    return writes;
  }
};

class CheckpointTransferTest : public ::testing::Test {
 protected:
  // Adam's slots and scalars over `num_servers`, parts of three floats.
  Cluster MakeCluster(int num_servers) const {
    const auto plan = MakePlan(variables_, num_servers, 12);
    EXPECT_OK(plan);
    const std::vector<std::vector<std::string>> slots(variables_.size(),
                                                      slots_);
    Cluster cluster{{*plan, slots, scalars_}, {}};
    for (int server = 0; server < num_servers; ++server) {
      cluster.shards.push_back(
          std::make_unique<FakeShard>(cluster.map, server));
    }
    return cluster;
  }
  State EmptyState() const {
    State state;
    for (const VariableSpec& variable : variables_) {
      state.emplace_back(
          1 + slots_.size(),
          Tensor(NumElements(variable.shape) * ElementSize(variable.dtype)));
    }
    return state;
  }
  // Every byte of every tensor differs from its neighbours.
  State SampleState() const {
    State state = EmptyState();
    char next = 1;
    for (auto& tensors : state) {
      for (Tensor& tensor : tensors) {
        std::iota(tensor.begin(), tensor.end(), next);
        next = static_cast<char>(next + 17);
      }
    }
    return state;
  }
  static void Load(Cluster& cluster, State state) {
    for (auto& shard : cluster.shards) {
      shard->Exchange(cluster.map, state, /*to_here=*/true);
    }
  }
  State Unload(Cluster& cluster) const {
    State state = EmptyState();
    for (auto& shard : cluster.shards) {
      shard->Exchange(cluster.map, state, /*to_here=*/false);
    }
    return state;
  }
  static Manifest MakeManifest(int64_t step) {
    Manifest manifest;
    manifest.job_name = "job";
    manifest.job_id = "job-1";
    manifest.global_step = step;
    manifest.mode = "strict";
    manifest.num_workers = 2;
    manifest.saved_at_unix_ms = 1;
    return manifest;
  }
  absl::Status Save(const Cluster& cluster, int64_t step) const {
    return SaveCheckpoint(store_, MakeManifest(step), cluster.map,
                          {{0.25f, 0.5f}}, cluster.Access())
        .status();
  }
  // The sample, written by two servers as step 7.
  CheckpointReader Sample() {
    Cluster cluster = MakeCluster(2);
    Load(cluster, SampleState());
    EXPECT_OK(Save(cluster, 7));
    return *store_.Open(7);
  }

  std::vector<VariableSpec> variables_ = {
      {"layer1/w", {4, 2}, DType::kFloat32, {}},
      {"layer1/b", {}, DType::kFloat32, {}},
      {"scale", {3}, DType::kFloat64, {}}};
  std::vector<std::string> slots_ = {"Adam", "Adam_1"};
  std::vector<std::string> scalars_ = {"beta1_power", "beta2_power"};
  const testing::TempDir temp_dir_;
  const CheckpointStore store_{temp_dir_.Join("checkpoints")};
};

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

TEST_F(CheckpointTransferTest, MissingVariableIsRefusedBeforeAnyWrite) {
  const CheckpointReader checkpoint = Sample();
  variables_.push_back({"layer2/w", {2}, DType::kFloat32, {}});
  Cluster cluster = MakeCluster(2);

  EXPECT_THAT(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("step 7"), HasSubstr("\"layer2/w\""))));

  EXPECT_EQ(cluster.writes(), 0);
}

TEST_F(CheckpointTransferTest, OtherShapeIsRefusedNamingBoth) {
  const CheckpointReader checkpoint = Sample();
  variables_[0].shape = {2, 4};
  Cluster cluster = MakeCluster(2);

  EXPECT_THAT(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"layer1/w\""), HasSubstr("[4,2]"),
                             HasSubstr("[2,4]"))));

  EXPECT_EQ(cluster.writes(), 0);
}

TEST_F(CheckpointTransferTest, OtherElementTypeIsRefusedNamingBoth) {
  const CheckpointReader checkpoint = Sample();
  variables_[2].dtype = DType::kFloat32;
  Cluster cluster = MakeCluster(2);

  EXPECT_THAT(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"scale\""), HasSubstr("F64"),
                             HasSubstr("F32"))));

  EXPECT_EQ(cluster.writes(), 0);
}

TEST_F(CheckpointTransferTest, OtherOptimizerIsRefusedBeforeAnyWrite) {
  const CheckpointReader checkpoint = Sample();
  slots_ = {"Momentum"};
  scalars_.clear();
  Cluster cluster = MakeCluster(2);

  EXPECT_THAT(RestoreCheckpoint(checkpoint, cluster.map, cluster.Access()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("/Momentum\"")));

  EXPECT_EQ(cluster.writes(), 0);
}

TEST_F(CheckpointTransferTest, MeanOfCenteredRmsPropIsNoMomentum) {
  const std::vector<std::string> plain = {"RMSProp", "RMSProp_1"};
  const std::vector<std::string> centered = {"RMSProp", "RMSProp_1",
                                             "RMSProp_2"};
  for (const auto& [from, to, message] :
       {std::tuple(centered, plain, "optimizer.centered is false"),
        std::tuple(plain, centered, "has no \"layer1/w/RMSProp_2\"")}) {
    slots_ = from;
    const auto step = static_cast<int64_t>(from.size());
    ASSERT_OK(Save(MakeCluster(2), step));
    slots_ = to;
    Cluster cluster = MakeCluster(2);

    EXPECT_THAT(
        RestoreCheckpoint(*store_.Open(step), cluster.map, cluster.Access()),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(message)));

    EXPECT_EQ(cluster.writes(), 0);
  }
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
