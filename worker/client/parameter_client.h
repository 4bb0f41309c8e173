#ifndef LOCKSTEP_WORKER_CLIENT_PARAMETER_CLIENT_H_
#define LOCKSTEP_WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/numeric/dtype.h"
#include "common/plan/plan.h"
#include "common/wire/sender.h"
#include "worker/loop/step_client.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// ParameterClient moves variables and gradients between all servers of a job
// and the worker's memory, chunk by chunk. After BeginPush(), gradients are
// sent as soon as they are ready. They are sent from the worker's memory
// without a copy, or as bfloat16 from a rounded copy of each chunk.
//
// A server of this host may share memory with the worker. It then reads
// gradients and provides values there, and calls carry only their offsets. The
// results have the same bits, rounding to bfloat16 included.
//
// It consists of Pulls and Pushes over ServerLinks; HeldChunks records which
// values the memory holds.
//
// Threads:  one thread calls; Cancel() may come from any other.
// Borrows:  the memory.
class ParameterClient final : public StepClient {
 public:
  struct Options {
    std::vector<std::string> servers;  // addresses by index of the ps task
    Sender self;
    int64_t max_part_bytes = 1 << 20;
    // kBFloat16: all variables must be float32.
    GradientType gradient_type = GradientType::kVariable;
    int pollers = 0;  // threads, as CallPoller takes them
    // TCP connections for large calls, to each server; 0: two to one server,
    // else one.
    int connections = 0;
    // In a mirrored job: the index of the server beside this worker, which has
    // the values of all parts. All pulls go to that server, and only pushes to
    // the others.
    std::optional<int> mirror = std::nullopt;
    // By variable: true if its gradient is never sent. Empty: all are sent.
    std::vector<bool> untrained = {};
    // Share memory with the mirror, and not with other servers of this host.
    bool shares_with_mirror_alone = false;
    // The job limits the mean of gradients, whose norm is not known when pushes
    // are answered: the answers bring no values.
    bool mean_is_limited = false;
  };

  ParameterClient(const Options& options, const Plan& plan,
                  ParameterMemory& memory);
  // Cancels the calls of a push that is in flight, and waits for their end.
  ~ParameterClient() override;

  absl::StatusOr<int64_t> Pull(int64_t step) override;
  absl::StatusOr<int64_t> PullAgain(int64_t step, PulledAgain what) override;
  void BeginPass(const PassId& pass, PassKind kind, bool watch) override;
  bool StepIsOver() const override;
  void GradientReady(size_t variable) override;
  void GradientAbsent(size_t variable) override;
  absl::StatusOr<Announcement> Announce(const PassId& pass) override;
  void BeginPush(const PassId& pass, int64_t attempt) override;
  absl::StatusOr<PushCounts> Push(const PassId& pass, int64_t attempt) override;
  void SendRest(const PassId& pass, int64_t attempt) override;
  bool PushesBringValues() const override { return brings_values_; }
  absl::Status AwaitValues(size_t first, size_t count) override;
  absl::StatusOr<Token> TakeToken(const PassId& pass, int64_t attempt) override;

  // Makes the current call and all later ones return kCancelled.
  void Cancel();

 private:
  struct Parts;

  const std::vector<bool> untrained_;
  const bool brings_values_;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_PARAMETER_CLIENT_H_
