#ifndef LOCKSTEP_TESTS_UNIT_SERVER_SHARD_SHARD_HOST_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_SERVER_SHARD_SHARD_HOST_FIXTURE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "server/shard/shard_host.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::server {

// The host of ps 2, in incarnation 5, of a job with one variable.
class ShardHostFixture : public ::testing::Test {
 protected:
  ShardHostFixture() {
    job_.replicas_to_aggregate = job_.total_num_replicas = 2;
    host_.SetJobId("job");
  }

  absl::StatusOr<std::shared_ptr<Shard>> Create() {
    return host_.Create(job_, variables_, parts_);
  }
  void CreateActive() {
    const auto shard = Create();
    ASSERT_OK(shard);
    ASSERT_OK((*shard)->Activate(0, {}));
  }
  // As a process does that is killed under a chief of `epoch`.
  void LeaveState(uint64_t epoch) {
    ShardHost killed(
        {.task_index = 2, .incarnation = 4, .state_dir = temp_dir_.path()});
    killed.SetJobId("job");
    ASSERT_OK(killed.FollowChief("job", epoch - 1));
    const auto shard = killed.Create(job_, variables_, parts_);
    ASSERT_OK(shard);
    ASSERT_OK((*shard)->Activate(0, {}));
    ASSERT_OK(killed.FollowChief("job", epoch));
  }
  bool HasFile() const { return !std::filesystem::is_empty(temp_dir_.path()); }

  const testing::TempDir temp_dir_;
  JobConfig job_;
  std::vector<VariableSpec> variables_ = {{"w", {4}, DType::kFloat32, {}}};
  std::vector<PartSpec> parts_ = {{0, 0, 4, DType::kFloat32}};
  ShardHost host_{
      {.task_index = 2, .incarnation = 5, .state_dir = temp_dir_.path()}};
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_TESTS_UNIT_SERVER_SHARD_SHARD_HOST_FIXTURE_H_
