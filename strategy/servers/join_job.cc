#include "strategy/servers/join_job.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "worker/session/session.h"

namespace lockstep::strategy {
namespace {

using worker::Session;

constexpr absl::Duration kWait = absl::Seconds(1);
constexpr int kWaitsWithoutGroup = 10;

class SessionJob final : public TrainingJob {
 public:
  explicit SessionJob(std::unique_ptr<Session> session)
      : session_(std::move(session)) {}

  absl::StatusOr<std::optional<JobPass>> Next(
      absl::FunctionRef<absl::Status()> group) override {
    worker::SessionStep step;
    int waits_without_group = 0;
    while (true) {
      // A session waits for a limited time, this call until there is a pass.
      LOCKSTEP_ASSIGN_OR_RETURN(const Session::Turn turn,
                                session_->Next(kWait, step));
      switch (turn) {
        case Session::Turn::kNothing:
          if (const absl::Status lives = group(); !lives.ok()) {
            if (++waits_without_group >= kWaitsWithoutGroup) return lives;
          }
          break;
        case Session::Turn::kRows:  // only jobs with tables, which this is not
          LOCKSTEP_RETURN_IF_ERROR(session_->Pull());
          break;
        case Session::Turn::kStep: {
          const worker::SessionJob job = session_->job();
          return JobPass{step.number, step.share, step.batch,
                         step.seed,   job.worker, job.num_workers};
        }
        case Session::Turn::kEnded:
          LOCKSTEP_RETURN_IF_ERROR(session_->end());
          return std::nullopt;
      }
    }
  }

  bool has_last_values() const override {
    return session_->last_step().has_value();
  }

  absl::Span<const std::byte> value(size_t variable) const override {
    return session_->value(variable);
  }

  absl::Status Push(absl::Span<const std::optional<Value>> gradients,
                    double loss) override {
    // From the last variable to the first, the order in which the session
    // sends: each gradient is on its way while the next is copied.
    for (size_t v = gradients.size(); v-- > 0;) {
      if (!gradients[v].has_value()) {
        LOCKSTEP_RETURN_IF_ERROR(session_->Absent(v));
        continue;
      }
      const absl::Span<const std::byte> bytes = gradients[v]->bytes();
      std::copy(bytes.begin(), bytes.end(), session_->gradient(v).begin());
      LOCKSTEP_RETURN_IF_ERROR(session_->Ready(v));
    }
    return session_->Finish(loss, session_->job().batch_size);
  }

  absl::StatusOr<std::vector<int64_t>> Examples(int64_t num_examples,
                                                int64_t batch) override {
    return session_->Examples(num_examples, batch);
  }

  void EndInput() override { session_->EndInput(); }

 private:
  const std::unique_ptr<Session> session_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingJob>> JoinJob(
    const JobOptions& options, const std::vector<JobVariable>& variables) {
  Session::Options how;
  how.tf_config = options.tf_config;
  how.tls_dir = options.tls_dir;
  how.log_level = options.log_level;
  std::vector<worker::SessionVariable> described;
  for (const JobVariable& variable : variables) {
    VariableSpec spec;
    spec.name = variable.name;
    spec.shape = variable.shape;
    spec.dtype = variable.dtype;
    described.push_back({std::move(spec), variable.initial});
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                            Session::Join(how, described));
  return std::make_unique<SessionJob>(std::move(session));
}

}  // namespace lockstep::strategy
