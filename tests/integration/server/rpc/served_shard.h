#ifndef LOCKSTEP_TESTS_INTEGRATION_SERVER_RPC_SERVED_SHARD_H_
#define LOCKSTEP_TESTS_INTEGRATION_SERVER_RPC_SERVED_SHARD_H_

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/job/job_config.h"
#include "common/plan/plan.h"
#include "common/rpc/server.h"
#include "lockstep/v1/parameter.grpc.pb.h"
#include "lockstep/v1/shard_control.grpc.pb.h"
#include "lockstep/v1/sync.grpc.pb.h"
#include "server/rpc/call_stream_service.h"
#include "server/rpc/parameter_service.h"
#include "server/rpc/replies.h"
#include "server/rpc/shard_control_service.h"
#include "server/rpc/sync_service.h"
#include "server/shard/chief_commands.h"
#include "server/shard/shard_host.h"
#include "tests/integration/call.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {

inline constexpr char kJobId[] = "job-1";

// ServedShard is all of a ps_server that is on the wire, on a port of its own,
// with ordinary generated stubs to call it. The model has three parts: both
// halves of float32 "w", 8 times 1, and float64 "b", 2 times 2. Gradient
// descent with rate 0.5; the first of two workers makes a step.
class ServedShard {
 public:
  // `dtype` is that of "w"; where it is not float32, what has to do with values
  // of "w" is up to the test.
  explicit ServedShard(int task_index = 0, SyncMode mode = SyncMode::kStrict,
                       DType dtype = DType::kFloat32);
  ~ServedShard();

  // The model as workers know it.
  static Plan MakePlan() {
    return {{{"w", {8}, DType::kFloat32, {}}, {"b", {2}, DType::kFloat64, {}}},
            {{0, 0, 4, 0, 0}, {0, 4, 4, 0, 1}, {1, 0, 2, 0, 2}}};
  }

  // Must come before Create(). With one worker, each gradient counts.
  void set_workers(int workers) { workers_ = workers; }
  // Likewise; the number of gradients in a step.
  void set_replicas(int replicas) { replicas_ = replicas; }

  // Prepares the shard as a chief does before training. A failure fails the
  // test.
  void Create();
  void Open();

  server::ShardHost& host() { return host_; }
  // Bytes of tensors that calls have moved so far, as the service says.
  size_t moved() const { return moved_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  std::string address() const;
  v1::ParameterService::Stub& parameters() { return *parameter_stub_; }
  v1::SyncService::Stub& sync() { return *sync_stub_; }
  v1::ShardControlService::Stub& control() { return *control_stub_; }

  // Answers calls that wait, as ps_server does when they have waited for long.
  void AnswerWaits();
  // Answers those that are to be answered however short they have waited.
  void AnswerEarly() { replies_.AnswerOld(absl::UnixEpoch()); }
  // Likewise; cancels calls whose callers do not read the answers.
  void TakeBack(absl::Time now) { replies_.TakeBack(now); }

  JobConfig Job() const;
  static v1::Identity Worker(int index, uint64_t incarnation = 1);
  v1::ChiefIdentity Chief() const;
  // From now on a later chief asks.
  void set_epoch(uint64_t epoch) { epoch_ = epoch; }

  // Requests as they should be; tests spoil them.
  v1::CreateShardRequest CreateRequest() const;
  v1::WritePartsRequest WriteRequest() const;  // 5 into all of "w"
  static v1::PushRequest PushRequest(int64_t step, int64_t attempt,
                                     float gradient);
  static v1::PullRequest PullRequest(int64_t step);
  static v1::AnnounceRequest AnnounceRequest(int worker, int64_t step);
  static v1::TakeTokenRequest TokenRequest(int worker, int64_t step);
  v1::TakeAndApplyRequest TakeRequest(int64_t step) const;
  v1::CommitRequest CommitRequest(int64_t step, int64_t attempt) const;

  // The newest values of "w", and then of "b".
  std::vector<double> Values();

  // Makes worker 0 the set of a step, unless it is.
  void Announce(int64_t step);
  // One whole step by worker 0.
  void Step(int64_t step, float gradient);
  // The chief's half of it: waits for the gradients, and commits.
  void FinishStep(int64_t step);

 private:
  const SyncMode mode_;
  const DType dtype_;
  int workers_ = 2;
  int replicas_ = 1;
  const TempDir directory_;
  std::atomic<size_t> moved_ = 0;
  server::ShardHost host_;
  server::ChiefCommands commands_;
  server::Replies replies_;
  server::ParameterService parameter_service_;
  server::SyncService sync_service_;
  server::CallStreamService stream_service_;
  server::ShardControlService control_service_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ParameterService::Stub> parameter_stub_;
  std::unique_ptr<v1::SyncService::Stub> sync_stub_;
  std::unique_ptr<v1::ShardControlService::Stub> control_stub_;
  uint64_t epoch_ = 0;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_INTEGRATION_SERVER_RPC_SERVED_SHARD_H_
