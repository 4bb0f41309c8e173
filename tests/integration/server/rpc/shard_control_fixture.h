#ifndef LOCKSTEP_TESTS_INTEGRATION_SERVER_RPC_SHARD_CONTROL_FIXTURE_H_
#define LOCKSTEP_TESTS_INTEGRATION_SERVER_RPC_SHARD_CONTROL_FIXTURE_H_

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {

// A served shard and what a chief says to it.
class ShardControlFixture : public ::testing::Test {
 protected:
  using Stub = v1::ShardControlService::Stub;

  v1::ReadSnapshotRequest ReadRequest() const {
    v1::ReadSnapshotRequest request;
    *request.mutable_chief() = shard_.Chief();
    request.mutable_selector()->mutable_parts()->set_num_parts(3);
    return request;
  }
  absl::Status Activate(int64_t step) {
    v1::ActivateRequest request;
    *request.mutable_chief() = shard_.Chief();
    request.set_global_step(step);
    return Call(shard_.control(), &Stub::Activate, request).status();
  }
  absl::Status Commit(int64_t step, int64_t attempt) {
    return Call(shard_.control(), &Stub::Commit,
                shard_.CommitRequest(step, attempt))
        .status();
  }
  // The server is as if nothing had happened, and can make its first step.
  void ExpectUntouched() {
    EXPECT_THAT(shard_.Values(),
                ::testing::ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2));
    shard_.Step(0, 2);
    EXPECT_THAT(shard_.Values(),
                ::testing::ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
  }
  // The epoch after the one that the chief has.
  absl::StatusOr<uint64_t> TakeEpoch() {
    v1::TakeEpochRequest request;
    *request.mutable_chief() = shard_.Chief();
    request.set_newer_than(shard_.Chief().epoch());
    auto response = Call(shard_.control(), &Stub::TakeEpoch, request);
    if (!response.ok()) return response.status();
    return response->epoch();
  }

  ServedShard shard_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_INTEGRATION_SERVER_RPC_SHARD_CONTROL_FIXTURE_H_
