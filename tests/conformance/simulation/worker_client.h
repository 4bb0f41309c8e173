#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_CLIENT_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/plan/plan.h"
#include "server/step/gate.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/server_process.h"
#include "tests/conformance/simulation/waiting.h"
#include "worker/client/chunks/held_chunks.h"
#include "worker/client/chunks/ready_chunks.h"
#include "worker/loop/step_client.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::simulation {

// WorkerClient takes the place of ParameterClient, with a variable and a chunk
// for each part. The product's HeldChunks says which values the worker lacks
// and whether those that pushes bring count, ReadyChunks which gradients are
// sent when; the calls, which it repeats when they fail for a passing reason,
// are those of the simulation.
class WorkerClient final : public worker::StepClient {
 public:
  // `plan`: as the chief told it when the worker joined.
  WorkerClient(Job& job, Waiting& waiting, int process, int worker,
               uint64_t incarnation, const Plan& plan);

  absl::StatusOr<int64_t> Pull(int64_t step) override;
  // The simulated job has no tables, and its workers take no values.
  absl::StatusOr<int64_t> PullAgain(int64_t step,
                                    PulledAgain /*what*/) override {
    return step;
  }
  void BeginPass(const PassId& pass, PassKind kind, bool watch) override;
  bool StepIsOver() const override { return watch_ && watch_->over; }
  void GradientReady(size_t variable) override;
  void GradientAbsent(size_t variable) override { absent_[variable] = true; }
  void BeginPush(const PassId& pass, int64_t attempt) override;
  absl::StatusOr<worker::Announcement> Announce(const PassId& pass) override;
  absl::StatusOr<worker::PushCounts> Push(const PassId& pass,
                                          int64_t attempt) override;
  void SendRest(const PassId& pass, int64_t attempt) override;
  absl::Status AwaitValues(size_t first, size_t count) override;
  absl::StatusOr<worker::Token> TakeToken(const PassId& pass,
                                          int64_t attempt) override;

  // The membership is over: calls end with kCancelled.
  void Cancel() { cancelled_ = true; }

  // The value from which the worker computes a part, and its gradient.
  float& value(int part) { return FloatOf(memory_.value(part)); }
  float& gradient(int part) { return FloatOf(memory_.gradient(part)); }
  worker::ParameterMemory& memory() { return memory_; }

 private:
  using Chunk = worker::ReadyChunks::Id;
  struct ActivePush {
    PassId pass;
    int64_t attempt = 0;
    int open = 0;  // calls
    bool rest_sent = false;
    worker::PushCounts counts;
    absl::Status status;
    std::vector<std::set<size_t>> through;  // by server
  };
  struct Watch {
    bool over = false;
    bool ended = false;
  };
  struct PullState {
    int open = 0;
    absl::Status status;
  };
  struct EarlyWait {
    PassId pass;
    int64_t attempt = 0;
    std::shared_ptr<std::optional<absl::StatusOr<server::Gate::Answer>>> answer;
  };

  Pass ToPass(const PassId& pass) const {
    return {worker_,     incarnation_, pass.step,
            pass.number, pass.slot,    pass.block};
  }
  static float& FloatOf(absl::Span<std::byte> bytes) {
    return *reinterpret_cast<float*>(bytes.data());
  }
  int PartOf(const Chunk& chunk) const {
    return chunks_.chunk(chunk.server, chunk.chunk).ranges[0].variable;
  }
  // Asks for values of a step that may not be committed, and ignores them.
  void AskAhead(const Chunk& chunk, int64_t step);
  void SendPull(const Chunk& chunk, int64_t step,
                const std::shared_ptr<PullState>& pull, bool share = true);
  // Takes the value of an answer. False: it was gone before it was copied.
  bool Take(const Chunk& chunk, const LentValue& lent);
  void StartPush(const Chunk& chunk) {
    ++push_->open;
    SendPush(chunk, push_);
  }
  void SendPush(const Chunk& chunk, const std::shared_ptr<ActivePush>& push);
  void TakePush(const Chunk& chunk, const std::shared_ptr<ActivePush>& push,
                const absl::StatusOr<PushReply>& answer);
  void SendTakeToken(const PassId& pass, int64_t attempt);
  absl::StatusOr<server::Gate::Answer> WaitForToken(const PassId& pass,
                                                    int64_t attempt);
  void AskAboutStep(const PassId& pass, const std::shared_ptr<Watch>& watch);
  void DropPush();

  Job& job_;
  Waiting& waiting_;
  const int process_;
  const int worker_;
  const uint64_t incarnation_;
  const Plan plan_;
  bool cancelled_ = false;
  worker::ParameterMemory memory_;
  worker::HeldChunks chunks_;
  worker::ReadyChunks ready_;
  std::vector<bool> absent_;
  bool token_early_ = true;
  std::shared_ptr<ActivePush> push_;
  std::shared_ptr<Watch> watch_;
  std::optional<EarlyWait> early_wait_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_CLIENT_H_
