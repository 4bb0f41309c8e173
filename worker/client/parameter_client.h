#ifndef LOCKSTEP_WORKER_CLIENT_PARAMETER_CLIENT_H_
#define LOCKSTEP_WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/numeric/dtype.h"
#include "common/plan/plan.h"
#include "common/wire/tensor_message.h"
#include "common/wire/wire_codec.h"
#include "lockstep/v1/parameter.pb.h"
#include "worker/client/chunk_plan.h"
#include "worker/client/chunk_transfer.h"
#include "worker/client/ready_chunks.h"
#include "worker/client/row_route.h"
#include "worker/client/rpc/call_poller.h"
#include "worker/client/rpc/server_channel.h"
#include "worker/client/shared_values.h"
#include "worker/client/sync_client.h"
#include "worker/loop/step_client.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep {

// ParameterClient speaks with all servers of a job: it moves variables and
// gradients between them and the worker's memory, chunk by chunk. Gradients
// are sent from where they are, and as soon as they are ready if that is asked
// for; as bfloat16, from slices that are made one chunk at a time, when it is
// its turn, and go once it is sent. With servers that can, gradients and values
// move through shared memory, as the variables' elements, and calls only say
// where; all else is the same, that gradients are rounded to bfloat16 too.
//
// Threads:  one thread calls; Cancel() may come from any other.
// Borrows:  the memory.
class ParameterClient final : public StepClient {
 public:
  struct Options {
    std::vector<std::string> servers;  // addresses by index of the ps task
    Sender self;
    int64_t max_part_bytes = 1 << 20;
    // kBFloat16 where all variables are float32.
    GradientType gradient_type = GradientType::kVariable;
    int pollers = 0;  // threads, as CallPoller takes them
    // For large calls, to each server; 0: two to one server, else one.
    int connections = 0;
  };

  ParameterClient(const Options& options, const Plan& plan,
                  ParameterMemory& memory);
  // Ends the calls that a push has in flight.
  ~ParameterClient() override;

  absl::StatusOr<int64_t> Pull(int64_t step) override;
  void BeginPass(const PassId& pass, PassKind kind, bool watch) override;
  bool StepIsOver() const override { return sync_.StepIsOver(); }
  void GradientReady(size_t variable) override;
  absl::StatusOr<Announcement> Announce(const PassId& pass) override;
  void BeginPush(const PassId& pass, int64_t attempt) override;
  absl::StatusOr<PushCounts> Push(const PassId& pass, int64_t attempt) override;
  void SendRest(const PassId& pass, int64_t attempt) override;
  absl::Status AwaitValues(size_t first, size_t count) override;
  absl::StatusOr<Token> TakeToken(const PassId& pass, int64_t attempt) override;

  // Ends the call at hand and all later ones with kCancelled.
  void Cancel();

 private:
  // What the memory holds of a chunk.
  struct Held {
    int64_t step = -1;
    // Of the push that brought it, while it is not known whether that attempt
    // was committed; 0: it is of a committed step.
    int64_t attempt = 0;
  };
  // A push that is under way.
  struct ActivePush;
  using ChunkLists = std::vector<std::deque<size_t>>;
  using Places = google::protobuf::RepeatedPtrField<v1::SharedValue>;
  // A server that this worker shares memory with.
  struct SharingServer {
    explicit SharingServer(SharedValues of_server)
        : values(std::move(of_server)) {}
    const SharedValues values;
    // No longer where the server has started anew.
    std::atomic<bool> open = true;
  };

  // Finds out which servers share memory, and of those that did whether they
  // do so again, having started anew. Before a pull, when no push is under way.
  absl::Status OpenSharedMemory();
  absl::StatusOr<SharedValues> OpenSharedMemoryOf(int server);
  // Cuts anew what a sharing server's calls carry.
  void CutForSharing(int server);
  bool Shares(int server) const {
    return sharing_[server] != nullptr && sharing_[server]->open;
  }
  // What a call's failure means: one that only says that memory is not shared
  // any more is worth another call.
  absl::Status Reconsider(const absl::Status& status, int server);

  // Says now and then why `what` has to wait.
  ChunkTransfer::Options TransferOptions(const std::string& what);
  absl::Status Finish(ChunkTransfer& transfer);
  // Finds out which parts have the rows that the pass has chosen of tables. No
  // rows of an earlier pass are held from then on.
  void RouteTables();
  bool HasRows(size_t server, size_t chunk) const {
    return !routed_[server][chunk].rows.empty();
  }
  // Large or small, as the channel has it.
  ServerChannel::Size CallSize(int server, size_t chunk) const;
  // All chunks, or those that are not held as of a committed `step`.
  ChunkLists Missing(std::optional<int64_t> step) const;
  // What a push of the chunk carries.
  std::vector<grpc::Slice> Payload(const Chunk& chunk) const;
  // Makes gradients that a server reads in place what it would have got over
  // the wire. Once a pass: another call may have the server read them already.
  void RoundInPlace(int server, size_t chunk, int64_t pass);
  void StartPull(int server, size_t chunk, int64_t step, bool shared,
                 ChunkTransfer::Report report);
  void StartPush(int server, size_t chunk, const v1::PushHeader& header,
                 std::function<void(const v1::PushResult&)> count,
                 ChunkTransfer::Report report);
  // kAborted: the values were gone before they could be copied.
  absl::Status TakePulled(const grpc::ByteBuffer& response, int server,
                          size_t chunk);
  absl::Status TakePushed(const grpc::ByteBuffer& response, int server,
                          size_t chunk, const v1::PushHeader& header,
                          v1::PushResult& result);
  // Both bring the values of a chunk: from the wire, or from where a server has
  // them.
  void Store(const TensorPayload& payload, const Chunk& chunk);
  absl::Status Copy(const Places& places, int server, const Chunk& chunk);
  // The values that pushes for the step's attempt brought are those of `step`;
  // what other attempts brought is of no use.
  void SettleHeld(int64_t step, int64_t attempt);
  // A pass that was given up has left a push behind: waits for its calls.
  void DropPush();

  const Options options_;
  const Plan plan_;
  ParameterMemory& memory_;
  std::vector<std::vector<Chunk>> chunks_;  // by server
  // By server; null: it shares nothing.
  std::vector<std::unique_ptr<SharingServer>> sharing_;
  bool opened_ = false;  // OpenSharedMemory() is done
  // As chunks_. Each belongs to its call while there is one.
  std::vector<std::vector<Held>> held_;
  // As held_: the pass whose gradients have been rounded in place.
  std::vector<std::vector<int64_t>> rounded_;
  std::vector<std::vector<RoutedRows>> routed_;  // as held_; of tables
  ReadyChunks ready_;
  std::atomic<bool> cancelled_ = false;
  CallPoller poller_;
  std::vector<std::unique_ptr<ServerChannel>> channels_;
  SyncClient sync_;
  std::unique_ptr<ActivePush> push_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_CLIENT_PARAMETER_CLIENT_H_
