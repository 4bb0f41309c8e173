#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_CLIENT_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "common/plan/plan.h"
#include "server/step/gate.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/server_process.h"
#include "tests/conformance/simulation/waiting.h"
#include "worker/client/chunks/held_chunks.h"
#include "worker/client/chunks/ready_chunks.h"
#include "worker/client/chunks/transfer_calls.h"
#include "worker/client/exchange/early_call.h"
#include "worker/client/exchange/pass_sends.h"
#include "worker/client/exchange/push_answers.h"
#include "worker/client/exchange/push_id.h"
#include "worker/loop/step_client.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::simulation {

// WorkerClient takes the place of ParameterClient, with a variable and a chunk
// for each part. It makes the calls, over the simulated network; the product's
// classes decide about them:
//
//   HeldChunks     which values the worker lacks
//   PassSends      what is sent for a pass, and when
//   TransferCalls  which calls start, are repeated, and end a pull or a push
//   PushAnswers    which values of a push may be used
//   LastAnswers    how long answers are awaited once training is over
//   EarlyCall      whether a call for a token that was sent early counts
//   RetryPause     which calls without values are repeated, and when
//   TokenOf()      the meaning of the answers to waits, as WatchResultOf()
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
  void GradientAbsent(size_t variable) override { sends_.MarkAbsent(variable); }
  void BeginPush(const PassId& pass, int64_t attempt) override;
  absl::StatusOr<worker::Announcement> Announce(const PassId& pass) override;
  absl::StatusOr<worker::PushCounts> Push(const PassId& pass,
                                          int64_t attempt) override;
  void SendRest(const PassId& pass, int64_t attempt) override;
  bool PushesBringValues() const override { return !plan_.mirrored; }
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
  // The calls of a pull or a push.
  struct Transfer {
    // Makes the call for a chunk.
    using Send =
        std::function<void(const std::shared_ptr<Transfer>&, const Chunk&)>;

    worker::TransferCalls calls;
    Send send;
  };
  struct ActivePush : Transfer {
    ActivePush(const worker::PushId& push, int num_servers, Send send_chunk)
        : Transfer{{{}, worker::HeldChunks::Lists(num_servers)},
                   std::move(send_chunk)},
          answers(push, num_servers) {}

    worker::PushAnswers answers;
    bool given_up = false;  // its answers change nothing any more
  };
  struct Watch {
    bool over = false;
    bool ended = false;
  };
  using TokenCall = std::optional<absl::StatusOr<server::Gate::Answer>>;

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
  // Starts the calls to a server that are due.
  void Pump(const std::shared_ptr<Transfer>& transfer, int server);
  // Must be called with the outcome of each call.
  void Done(const std::shared_ptr<Transfer>& transfer, const Chunk& chunk,
            const absl::Status& status);
  // Adds a chunk to the push.
  void Add(const Chunk& chunk);
  // Waits for the end of a transfer.
  absl::Status Finish(const Transfer& transfer);
  // Asks for values of a step that may not be committed, and ignores them.
  void AskAhead(const Chunk& chunk, int64_t step);
  void SendPull(const Chunk& chunk, int64_t step,
                const std::shared_ptr<Transfer>& pull, bool share = true);
  // Takes the value of an answer. False: it was gone before it was copied.
  bool Take(const Chunk& chunk, const LentValue& lent);
  void BeginPush(const worker::PushId& id);
  void SendRest(const worker::PushId& id);
  void SendPush(const Chunk& chunk, const std::shared_ptr<ActivePush>& push);
  void TakePush(const Chunk& chunk, const PushReply& answer,
                worker::PushAnswers& answers);
  // As those of Pushes and SyncClient.
  bool AwaitAnswers(const worker::PushId& id);
  bool TrainingIsOver(const worker::PushId& after) const;
  std::shared_ptr<TokenCall> SendTakeToken(const worker::PushId& after);
  // As RepeatedCalls::CallUntilAnswered(), for the call that `attempt` makes.
  template <typename Answer>
  absl::StatusOr<Answer> UntilAnswered(
      const std::function<absl::StatusOr<Answer>()>& attempt);
  void AskAboutStep(const PassId& pass, const std::shared_ptr<Watch>& watch);
  void EndWatch() {
    if (watch_) watch_->ended = true;
  }
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
  worker::PassSends sends_;
  std::shared_ptr<ActivePush> push_;  // while sends_ has a push
  std::shared_ptr<Watch> watch_;
  worker::EarlyCall<TokenCall> early_call_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_CLIENT_H_
