#ifndef LOCKSTEP_TESTS_UNIT_CHIEF_CHECKPOINT_CHECKPOINT_TRANSFER_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_CHIEF_CHECKPOINT_CHECKPOINT_TRANSFER_FIXTURE_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "chief/checkpoint/checkpoint_transfer.h"
#include "chief/plan/placement.h"
#include "common/base/status_macros.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {

// Clusters of servers in memory that hold a model of three variables, and a
// store of checkpoints.
class CheckpointTransferFixture : public ::testing::Test {
 protected:
  using Tensor = std::vector<char>;  // of a whole variable
  // By variable, then value and slots.
  using State = std::vector<std::vector<Tensor>>;

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

}  // namespace lockstep::chief

#endif  // LOCKSTEP_TESTS_UNIT_CHIEF_CHECKPOINT_CHECKPOINT_TRANSFER_FIXTURE_H_
