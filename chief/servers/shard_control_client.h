#ifndef LOCKSTEP_CHIEF_SERVERS_SHARD_CONTROL_CLIENT_H_
#define LOCKSTEP_CHIEF_SERVERS_SHARD_CONTROL_CLIENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chief/servers/shard_calls.h"
#include "chief/servers/take_result.h"
#include "common/base/mutex.h"
#include "common/job/job_config.h"
#include "common/metrics/durations.h"
#include "common/plan/plan.h"
#include "common/plan/step_vocabulary.h"
#include "common/wire/wire_codec.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "lockstep/v1/shard_control.grpc.pb.h"

namespace lockstep::chief {

// ShardControlClient makes the calls of the chief to one server.
//
// Setup calls (TakeEpoch, CreateShard, Activate) wait a moment for a server
// that is not up yet. All blocking calls may be repeated. The calls of a step,
// which have a callback, return at once and run the callback once; they end
// within `kCallDeadline` in any case, and before the client is destroyed.
//
// Threads: safe to share; callbacks run in gRPC's threads, never inside the
//          call, and must not destroy the client.
// Errors:  those of ShardControlService, and kDeadlineExceeded.
class ShardControlClient final : public ShardCalls {
 public:
  using TakeCallback = std::function<void(absl::Status, const TakeResult&)>;
  // `redone_attempt`: as in CommitResponse.
  using CommitCallback =
      std::function<void(absl::Status, int64_t redone_attempt)>;
  using ExpireCallback = std::function<void(absl::StatusOr<Expired>)>;
  using ReplaceCallback = std::function<void(absl::StatusOr<Replaced>)>;
  using CloseCallback = std::function<void(absl::Status)>;

  ShardControlClient(const std::string& address, const Sender& chief);
  ~ShardControlClient() override;  // shuts down first

  absl::StatusOr<uint64_t> TakeEpoch(uint64_t newer_than) override;
  void set_epoch(uint64_t epoch) override { epoch_ = epoch; }
  void set_incarnation(uint64_t incarnation) override {
    chief_.incarnation = incarnation;
  }
  absl::StatusOr<Created> CreateShard(const JobConfig& job, const Plan& plan,
                                      int server, State state) override;
  absl::Status WriteParts(const ElementRange& range,
                          absl::Span<const char> bytes) override;
  absl::Status WriteRows(int part, int tensor, absl::Span<const int64_t> keys,
                         absl::Span<const char> bytes) override;
  absl::Status Activate(const Opening& opening) override;

  // `commit_until`, `attempt` and `norm`: as in TakeAndApplyRequest.
  void TakeAndApply(int64_t step, int64_t commit_until, int64_t attempt,
                    const std::optional<MeanNorm>& norm, TakeCallback callback)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `contributors`, by server, are sent to ps task 0, without empty sets.
  void Commit(int64_t step, int64_t attempt,
              const std::vector<std::vector<int>>& contributors,
              CommitCallback callback) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CommitAndWait(int64_t step, int64_t attempt) override;

  absl::StatusOr<Expired> ExpireWorker(int worker, uint64_t incarnation,
                                       const std::string& reason, int64_t step,
                                       int64_t attempt) override;
  // As ExpireWorker(), as a call of a step. `input_ended`: the worker has used
  // up its data.
  void StartExpireWorker(int worker, uint64_t incarnation,
                         const std::string& reason, bool input_ended,
                         int64_t step, int64_t attempt, ExpireCallback callback)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `attempt`: in the call to ps task 0, the attempt that is held up; in calls
  // to other servers, the attempt that ps task 0 answered.
  void StartReplaceMember(int worker, int64_t step, int64_t attempt,
                          const std::string& reason, ReplaceCallback callback)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void StartCloseTokens(CloseCallback callback) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<ShardSnapshot> BeginSnapshot(int64_t step) override;
  absl::Status ReadSnapshot(const ElementRange& range,
                            absl::Span<char> bytes) override;
  absl::Status ReadKeys(int part, int64_t first,
                        absl::Span<int64_t> keys) override;
  absl::Status EndSnapshot() override;

  // Ends the calls of a step with kCancelled, those in flight and all later
  // ones. When it returns, no callback of an earlier call is running or will
  // run. Must not be called from a callback.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A call of a step in flight.
  struct InFlight {
    // `method`: its name in ShardControlService.
    explicit InFlight(absl::string_view method)
        : timer(RpcSide::kClient,
                absl::StrCat("/lockstep.v1.ShardControlService/", method)) {}
    virtual ~InFlight() = default;
    grpc::ClientContext context;
    const RpcTimer timer;
  };
  template <typename Request, typename Response>
  struct StepCall;

  // Keeps `call`, which is about to start, until Done().
  template <typename Call>
  Call* Keep(std::unique_ptr<Call> call) ABSL_LOCKS_EXCLUDED(mutex_);
  template <typename Call>
  void Done(Call* call, const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_shut_down() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return shut_down_;
  }

  v1::ChiefIdentity Chief() const;
  v1::ExpireWorkerRequest ExpireRequest(int worker, uint64_t incarnation,
                                        const std::string& reason, int64_t step,
                                        int64_t attempt) const;
  // Call RPCs whose payload is raw bytes.
  absl::Status Write(const v1::WritePartsHeader& header,
                     absl::Span<const char> bytes);
  absl::Status Read(const v1::TensorSelector& selector, absl::Span<char> bytes);
  absl::Status CallRaw(const std::string& method,
                       const grpc::ByteBuffer& request,
                       grpc::ByteBuffer& response);

  Sender chief_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::ShardControlService::Stub> stub_;
  uint64_t epoch_ = 0;
  int64_t snapshot_step_ = -1;  // of the newest snapshot

  mutable Mutex mutex_;
  CondVar idle_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<InFlight*, std::unique_ptr<InFlight>> in_flight_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVERS_SHARD_CONTROL_CLIENT_H_
