#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/steps/sync_loop.h"
#include "server/step/compatible/compatible_engine.h"
#include "server/step/compatible/compatible_gate.h"
#include "server/update/slots.h"
#include "tests/golden/gradient_json.h"
#include "tests/golden/optimizer_json.h"
#include "tests/golden/replay.h"
#include "tests/golden/trace_updater.h"

namespace lockstep::golden {
namespace {

struct Worker {
  uint64_t incarnation = 1;
  int64_t passes = 0;
  int64_t local_step = 0;
  bool waits = false;
};

// Reads the scenario's job, with the product's checks.
JobConfig ReadJob(const Json& scenario) {
  JobConfig job;
  job.mode = SyncMode::kCompatible;
  const auto narrow = [&scenario](const char* field) {
    const int64_t value = ReadInt(scenario.at(field));
    if (value != static_cast<int>(value)) {
      throw BadTrace(absl::StrCat(field, " is too large"));
    }
    return static_cast<int>(value);
  };
  job.replicas_to_aggregate = narrow("replicas_to_aggregate");
  job.total_num_replicas = narrow("total_num_replicas");
  job.initial_tokens = narrow("num_tokens");
  // Not used here, but required in a valid job.
  job.train_steps = 1;
  job.batch_size = 1;
  job.data.train_images = job.data.train_labels = "none";
  return job;
}

// A job with one server in one thread: the chief's loop, the parts, the token
// queue and the workers, each of which executes its operations at once.
class SyncLoopReplay {
 public:
  SyncLoopReplay(const Json& scenario, const JobConfig& job, Report& report)
      : scenario_(scenario), report_(report) {
    ReadVariables();
    if (parts_.empty()) throw BadTrace("no variable has a gradient");
    shard_ = std::make_unique<server::CompatibleEngine>(
        job.replicas_to_aggregate, parts_, *updater_);
    const int tokens = job.initial_tokens == -1 ? job.replicas_to_aggregate
                                                : job.initial_tokens;
    gate_ = std::make_unique<server::CompatibleGate>(
        server::CompatibleGate::Options{
            std::max(0, tokens),
            std::max(job.replicas_to_aggregate, job.total_num_replicas)});
    const int64_t workers = ReadInt(scenario.at("workers"));
    if (workers < 1 || workers > 1 << 20) throw BadTrace("too many workers");
    workers_.resize(workers);
  }

  void Run() {
    const Json& ops = scenario_.at("ops");
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string kind = ops[i].at("op");
      report_.Begin(i, kind);
      RunOne(kind, ops[i]);
      CompareState(ops[i].at("state"));
    }
  }

 private:
  void ReadVariables() {
    const OptimizerRecord record =
        ReadOptimizer(scenario_.at("optimizer").at("name"),
                      scenario_.at("optimizer").at("hyper"));
    StepSettings settings{record.config, ReadDType(scenario_),
                          record.learning_rate,
                          server::InitialAdamPowers(record.config)};
    std::optional<double> decay;
    if (!scenario_.at("moving_average").is_null()) {
      decay = ReadNumber(scenario_.at("moving_average"));
    }
    std::vector<TraceUpdater::Variable> variables;
    for (const Json& json : scenario_.at("variables")) {
      TraceUpdater::Variable variable;
      variable.state =
          MakeState(settings, ReadTensor(settings.dtype, json.at("initial")));
      variable.sparse = json.at("sparse").get<bool>();
      if (decay) variable.average = variable.state.value.values;
      AddPart(settings.dtype, variable, json.value("no_gradient", false));
      variables.push_back(std::move(variable));
    }
    updater_ = std::make_unique<TraceUpdater>(
        std::move(settings), decay, std::move(variables), part_variables_);
  }

  void AddPart(DType dtype, const TraceUpdater::Variable& variable,
               bool no_gradient) {
    part_of_.push_back(no_gradient ? -1 : static_cast<int>(parts_.size()));
    if (no_gradient) return;
    server::CompatiblePart part{dtype};
    const std::vector<int64_t>& shape = variable.state.value.shape;
    if (variable.sparse && shape.empty()) throw BadTrace("a scalar is sparse");
    if (variable.sparse) part.sparse_rows = shape[0];
    parts_.push_back(part);
    part_variables_.push_back(static_cast<int>(part_of_.size()) - 1);
  }

  void RunOne(const std::string& kind, const Json& op) {
    if (kind == "state") return Start();
    if (kind == "pass") return Pass(op);
    if (kind == "restart_worker") return RestartWorker(op);
    if (kind == "stop_chief") return StopChief(op);
    if (kind == "reinit_chief") return ReinitChief(op);
    throw BadTrace(absl::StrCat("unknown operation \"", kind, "\""));
  }

  void Start() {
    shard_->Activate(0);
    OnTokens(gate_->Activate(0));
    BeginLoop(0);
  }

  int ReadWorker(const Json& op) const {
    const int64_t worker = ReadInt(op.at("worker"));
    if (worker < 0 || worker >= static_cast<int64_t>(workers_.size())) {
      throw BadTrace(absl::StrCat("there is no worker ", worker));
    }
    return static_cast<int>(worker);
  }

  void Pass(const Json& op) {
    const int index = ReadWorker(op);
    Worker& worker = workers_[index];
    if (worker.waits) throw BadTrace("a worker that waits makes a pass");
    const lockstep::Pass pass{index, worker.incarnation, worker.local_step,
                              ++worker.passes, 0};
    PushGradients(pass, op.at("gradients"));
    worker.waits = true;
    const auto answers = gate_->Wait(Ticket(index), pass, 0, absl::UnixEpoch());
    report_.Expect("status of the wait", "OK", StatusName(answers.status()));
    if (answers.ok()) OnTokens(*answers);
  }

  void PushGradients(const lockstep::Pass& pass, const Json& gradients) {
    server::Push push{pass, 0, 0, {}};
    std::vector<std::unique_ptr<SparseRecord>> owners;
    for (size_t v = 0; v < part_of_.size(); ++v) {
      const Json& gradient = gradients.at(v);
      if (part_of_[v] < 0) {
        if (!gradient.is_null()) throw BadTrace("a gradient out of place");
        continue;
      }
      owners.push_back(std::make_unique<SparseRecord>(ReadGradient(gradient)));
      const std::vector<std::byte>& values = owners.back()->values.values;
      server::PartGradient part{{{values.data(), values.size()}}, nullptr};
      if (gradient.contains("indices")) {
        part.rows = {owners.back()->indices, owners.back()->values.shape};
      }
      push.gradients.push_back(std::move(part));
    }
    if (push.gradients.empty()) return;
    auto answers = shard_->AddPush(1, std::move(push));
    report_.Expect("status of the push", "OK", StatusName(answers.status()));
    if (answers.ok()) OnTakes(answers->takes);
  }

  SparseRecord ReadGradient(const Json& gradient) const {
    const DType dtype = updater_->settings().dtype;
    if (gradient.contains("indices")) return ReadSparse(dtype, gradient);
    return {dtype, {}, 1, ReadTensor(dtype, gradient), {}};
  }

  // Cancels its wait for a token, if there is one; no token is lost.
  void Withdraw(int index, const Json& op) {
    Worker& worker = workers_[index];
    report_.Expect("cancelled", op.at("cancelled").dump(),
                   worker.waits ? "true" : "false");
    if (worker.waits) gate_->Cancel(Ticket(index));
    worker.waits = false;
  }

  // The first pass after a restart needs no token.
  void RestartWorker(const Json& op) {
    const int index = ReadWorker(op);
    Withdraw(index, op);
    const uint64_t incarnation = workers_[index].incarnation + 1;
    workers_[index] = {incarnation, 0, gate_->global_step(), false};
  }

  void StopChief(const Json& op) {
    Withdraw(0, op);
    shard_->StopTakes();
    loop_.reset();
  }

  // Worker 0 hosts the chief and restarts with it.
  void ReinitChief(const Json& op) {
    Withdraw(0, op);
    const int64_t step = gate_->global_step();
    workers_[0] = {workers_[0].incarnation + 1, 0, step, false};
    shard_->Activate(step);
    if (op.at("tokens").get<bool>()) OnTokens(gate_->IssueInitialTokens());
    BeginLoop(step);
  }

  void BeginLoop(int64_t step) {
    loop_ = std::make_unique<chief::SyncLoop>(std::vector<int>{0}, step);
    Do(loop_->Begin());
  }

  void Do(const chief::SyncLoop::Actions& actions) {
    if (!actions.takes.empty()) {
      const auto answers = shard_->Take(0, loop_->step());
      report_.Expect("status of the take", "OK", StatusName(answers.status()));
      if (answers.ok()) OnTakes(answers->takes);
    }
    if (actions.commit.has_value()) Commit(actions.commit->step);
  }

  void OnTakes(const std::vector<server::TakeAnswer>& takes) {
    for (const server::TakeAnswer& take : takes) {
      report_.Expect("status of the update", "OK", StatusName(take.status));
      if (take.prepared && loop_ != nullptr) {
        Do(loop_->OnPrepared(0, loop_->step(), take.attempt));
      }
    }
  }

  // Order: the step, the tokens, the moving averages, the next step.
  void Commit(int64_t step) {
    const auto tokens = gate_->Commit(step, 0);
    report_.Expect("status of the commit", "OK", StatusName(tokens.status()));
    if (!tokens.ok()) return;
    OnTokens(*tokens);
    report_.Expect("status of the shard's commit", "OK",
                   StatusName(shard_->Commit(step, 0).status()));
    loop_->OnCommitted(step);
    Do(loop_->Begin());
  }

  void OnTokens(const std::vector<server::Gate::Answer>& answers) {
    for (const server::Gate::Answer& answer : answers) {
      if (answer.outcome != server::Gate::Outcome::kToken) continue;
      workers_[answer.ticket].local_step = answer.step;
      workers_[answer.ticket].waits = false;
    }
  }

  static uint64_t Ticket(int worker) { return static_cast<uint64_t>(worker); }

  void CompareState(const Json& state) {
    report_.Expect("global_step", ReadInt(state.at("global_step")),
                   gate_->global_step());
    std::vector<int64_t> local_steps;
    std::vector<int64_t> blocked;
    for (size_t i = 0; i < workers_.size(); ++i) {
      local_steps.push_back(workers_[i].local_step);
      if (workers_[i].waits) blocked.push_back(static_cast<int64_t>(i));
    }
    report_.Expect("local_steps", ReadInts(state.at("local_steps")),
                   local_steps);
    report_.Expect("blocked", ReadInts(state.at("blocked")), blocked);
    report_.Expect("tokens", ReadInts(state.at("tokens")), gate_->tokens());
    CompareAccumulated(state.at("accumulated"));
    for (size_t v = 0; v < part_of_.size(); ++v) CompareVariable(v, state);
    CompareScalars(state);
  }

  void CompareAccumulated(const Json& recorded) {
    Json accumulated = Json::array();
    for (const int part : part_of_) {
      accumulated.push_back(part < 0 ? Json()
                                     : Json(shard_->num_accumulated(part)));
    }
    report_.Expect("accumulated", recorded.dump(), accumulated.dump());
  }

  void CompareVariable(size_t v, const Json& state) {
    const TraceUpdater::Variable& variable = updater_->variables()[v];
    CompareTensor(absl::StrCat("variable ", v), state.at("variables").at(v),
                  variable.state.value.values);
    const Json& averages = state.at("averages");
    if (!averages.is_null()) {
      CompareTensor(absl::StrCat("average ", v), averages.at(v),
                    variable.average);
    }
    const Json& recorded = state.at("slots").at(v);
    const std::vector<server::SlotSpec> slots =
        server::Slots(updater_->settings().config);
    report_.Expect("number of slots", recorded.size(),
                   part_of_[v] < 0 ? 0 : slots.size());
    for (size_t i = 0; part_of_[v] >= 0 && i < slots.size(); ++i) {
      CompareTensor(absl::StrCat("slot ", slots[i].key, " of ", v),
                    recorded.at(slots[i].key), variable.state.slots[i]);
    }
  }

  void CompareScalars(const Json& state) {
    if (!server::HasAdamPowers(updater_->settings().config)) return;
    const Json& scalars = state.at("scalars");
    const server::AdamPowers powers = updater_->settings().powers;
    const DType dtype = DType::kFloat32;
    report_.Expect(
        "beta powers",
        Text({RoundTo(dtype, ReadNumber(scalars.at("beta1_power"))),
              RoundTo(dtype, ReadNumber(scalars.at("beta2_power")))}),
        Text({powers.beta1_power, powers.beta2_power}));
  }

  void CompareTensor(absl::string_view what, const Json& recorded,
                     const std::vector<std::byte>& got) {
    const DType dtype = updater_->settings().dtype;
    report_.ExpectSame(what, dtype, ReadTensor(dtype, recorded).values, got,
                       Zeros::kEqual);
  }

  const Json& scenario_;
  Report& report_;
  std::vector<server::CompatiblePart> parts_;
  std::vector<int> part_variables_;  // by part
  std::vector<int> part_of_;         // by variable; -1: it has no gradient
  std::unique_ptr<TraceUpdater> updater_;
  std::unique_ptr<server::CompatibleEngine> shard_;
  std::unique_ptr<server::CompatibleGate> gate_;
  std::unique_ptr<chief::SyncLoop> loop_;  // null while the chief is away
  std::vector<Worker> workers_;
};

}  // namespace

void ReplaySyncLoop(const Json& scenario, Report& report) {
  const JobConfig job = ReadJob(scenario);
  const absl::Status status = ValidateJobConfig(job);
  const Json& ops = scenario.at("ops");
  if (ops.at(0).at("op") == "start") {
    report.Expect("status of the start", ops[0].at("status"),
                  StatusName(status));
    return;
  }
  if (!report.Expect("status of the start", "OK", StatusName(status))) return;
  SyncLoopReplay(scenario, job, report).Run();
}

}  // namespace lockstep::golden
