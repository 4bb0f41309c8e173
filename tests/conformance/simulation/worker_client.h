#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_CLIENT_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "server/step/gate.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/server_process.h"
#include "tests/conformance/simulation/waiting.h"
#include "worker/loop/step_client.h"

namespace lockstep::simulation {

// WorkerClient takes the place of ParameterClient, with a call for each part:
// it repeats calls that fail for a passing reason, sends gradients as they
// become ready, and keeps the values that pushes bring until the token says
// whether they count.
class WorkerClient final : public worker::StepClient {
 public:
  WorkerClient(Job& job, Waiting& waiting, int process, int worker,
               uint64_t incarnation);

  absl::StatusOr<int64_t> Pull(int64_t step) override;
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

  // By part: the values from which the worker computes, and its gradients.
  std::vector<float> values;
  std::vector<float> gradients;

 private:
  struct Held {
    int64_t step = -1;
    int64_t attempt = 0;
  };
  struct ActivePush {
    PassId pass;
    int64_t attempt = 0;
    int open = 0;  // calls
    bool rest_sent = false;
    worker::PushCounts counts;
    absl::Status status;
    std::vector<bool> sent;
    std::vector<bool> answered;
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
    return {worker_, incarnation_, pass.step, pass.number, pass.slot};
  }
  // Asks for values of a step that may not be committed, and ignores them.
  void AskAhead(int part, int64_t step);
  void SendPull(int part, int64_t step, const std::shared_ptr<PullState>& pull);
  void SendPush(int part, const std::shared_ptr<ActivePush>& push);
  void TakePush(int part, const std::shared_ptr<ActivePush>& push,
                const absl::StatusOr<PushReply>& answer);
  void SendTakeToken(const PassId& pass, int64_t attempt);
  absl::StatusOr<server::Gate::Answer> WaitForToken(const PassId& pass,
                                                    int64_t attempt);
  void AskAboutStep(const PassId& pass, const std::shared_ptr<Watch>& watch);
  void DropPush();
  void SettleHeld(int64_t step, int64_t attempt);

  Job& job_;
  Waiting& waiting_;
  const int process_;
  const int worker_;
  const uint64_t incarnation_;
  bool cancelled_ = false;
  std::vector<Held> held_;
  std::vector<bool> ready_;
  std::vector<bool> absent_;
  bool token_early_ = true;
  std::shared_ptr<ActivePush> push_;
  std::shared_ptr<Watch> watch_;
  std::optional<EarlyWait> early_wait_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_CLIENT_H_
