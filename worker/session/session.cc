#include "worker/session/session.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster.h"
#include "common/observe/status_server.h"
#include "common/program/main_support.h"
#include "common/trace/span_recorder.h"
#include "worker/hosted/hosted_roles.h"
#include "worker/session/handed_in.h"
#include "worker/session/pass_facts.h"
#include "worker/session/program_workload.h"
#include "worker/session/session_variables.h"
#include "worker/session/training_member.h"

namespace lockstep::worker {
namespace {

// A process has one log and one set of certificates, so one session.
std::atomic<bool> has_session{false};

}  // namespace

struct Session::Parts {
  Parts(std::vector<VariableSpec> specs,
        std::vector<absl::Span<const std::byte>> initial, int index)
      : workload(std::move(specs), std::move(initial)), worker(index) {}

  // Starts the roles that this process has besides the worker.
  absl::Status Host(const Cluster& cluster, const CommonFlags& flags,
                    const Options& options);
  // Trains; then waits until the roles in this process have ended, too.
  absl::Status Run();
  // Marks the end of the worker's own part; returns the reason of a Fail()
  // before it.
  std::optional<std::string> EndMember() ABSL_LOCKS_EXCLUDED(mutex);
  bool MemberEnded() ABSL_LOCKS_EXCLUDED(mutex);
  void Fail(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex);
  void RequestStop(const std::string& reason);
  // False before the first step, and if there is no such variable.
  bool HasMemory(size_t variable) const;
  // OK while a step is open; kAborted if it is over without this pass.
  absl::Status CheckOpen() {
    return open ? absl::OkStatus() : workload.handover().CheckWanted();
  }
  // Returns `status`, of a call for the step at hand. kAborted closes the step:
  // from then on the loop may write the memory.
  absl::Status Noted(absl::Status status) {
    if (absl::IsAborted(status)) open = false;
    return status;
  }

  ProgramWorkload workload;
  const int worker;
  const pid_t process = getpid();
  std::unique_ptr<TrainingMember> member;
  std::unique_ptr<HostedRoles> hosted;  // null: none
  std::unique_ptr<StatusServer> status_server;
  std::thread thread;
  std::atomic<bool> failed = false;  // Session::Fail() has been called
  std::atomic<bool> left = false;    // Session::Leave() has been called
  Mutex mutex;
  std::optional<std::string> fault ABSL_GUARDED_BY(mutex);  // Fail()'s reason
  // The worker's own part is over; hosted roles may still run.
  bool member_ended ABSL_GUARDED_BY(mutex) = false;
  // The current pass.
  bool open = false;
  SessionStep step;
  std::shared_ptr<ParameterMemory> memory;
  int64_t membership = 0;
  PassFacts facts;
  bool choosing = false;  // rows, before the pull
  bool unpulled = false;  // rows were chosen after it
  HandedIn handed_in;
  std::optional<SpanTimer> reading;
};

absl::Status Session::Parts::Host(const Cluster& cluster,
                                  const CommonFlags& flags,
                                  const Options& options) {
  HostedRoles::Options roles;
  LOCKSTEP_ASSIGN_OR_RETURN(
      roles.job, JobOfProgram({options.job_file, options.settings, {}}));
  roles.recorded = !flags.status_address.empty();
  roles.state_dir = OptionOfProgram(options.state_dir, "LOCKSTEP_STATE_DIR");
  roles.expected_job = options.expected_job;
  roles.shared_memory = options.shared_memory;
  roles.chief_wait = options.chief_wait;
  LOCKSTEP_ASSIGN_OR_RETURN(hosted,
                            HostedRoles::Start(cluster, roles, Clock::Real()));
  if (hosted == nullptr) return absl::OkStatus();
  hosted->SetOnStopped(
      [this](const absl::Status& why) { member->OnMirrorEnded(why); });
  LOCKSTEP_ASSIGN_OR_RETURN(
      status_server, ServeStatus(
                         flags, cluster, [this] { return hosted->Metrics(); },
                         [this] { return hosted->Pages(); }));
  return absl::OkStatus();
}

absl::Status Session::Parts::Run() {
  const absl::Status status = member->Run();
  if (hosted == nullptr) return status;
  if (const std::optional<std::string> why = EndMember(); why.has_value()) {
    // After this worker has left with its reason: a job that cannot do without
    // it fails with that, and only one that can is stopped here.
    hosted->RequestStop(*why);
  } else if (member->stays_member()) {
    // The job would wait for this worker, and this process for the job.
    hosted->RequestStop(std::string(status.message()));
  } else if (!status.ok() || member->input_ended()) {
    hosted->OnWorkerEnded(status);
  }
  const absl::Status job = hosted->Wait();
  return status.ok() ? job : status;
}

std::optional<std::string> Session::Parts::EndMember() {
  MutexLock lock(mutex);
  member_ended = true;
  return fault;
}

void Session::Parts::Fail(const std::string& reason) {
  bool late = false;
  {
    MutexLock lock(mutex);
    fault = reason;
    late = member_ended;
  }
  member->Fail(reason);
  // Nothing else would end the roles: this worker left before the fault.
  if (late && hosted != nullptr) hosted->RequestStop(reason);
}

bool Session::Parts::MemberEnded() {
  MutexLock lock(mutex);
  return member_ended;
}

void Session::Parts::RequestStop(const std::string& reason) {
  // The worker leaves first where it can, and its mirror follows.
  if (hosted != nullptr && (hosted->carries_job() || MemberEnded())) {
    hosted->RequestStop(reason);
  } else {
    member->RequestStop(reason);
  }
}

absl::StatusOr<std::unique_ptr<Session>> Session::Join(
    const Options& options, const std::vector<SessionVariable>& variables) {
  LOCKSTEP_RETURN_IF_ERROR(CheckVariables(variables));
  if (has_session.exchange(true)) {
    return absl::FailedPreconditionError(
        "this process is a worker already; a process can have one at a time: "
        "close the first, or start another process");
  }
  const auto join = [&]() -> absl::StatusOr<std::unique_ptr<Session>> {
    CommonFlags flags;
    flags.tf_config = options.tf_config;
    flags.insecure = OptionOfProgram("", "LOCKSTEP_INSECURE") == "1";
    flags.tls_dir = OptionOfProgram(options.tls_dir, "LOCKSTEP_TLS_DIR");
    flags.log_level = LogLevelOfProgram(options.log_level);
    flags.status_address =
        OptionOfProgram(options.status_address, "LOCKSTEP_STATUS_ADDRESS");
    flags.exit_with_parent = options.exit_with_parent;
    LOCKSTEP_ASSIGN_OR_RETURN(
        const Cluster cluster,
        StartProcess(flags, {TaskType::kWorker}, "a worker program"));
    auto parts = std::make_unique<Parts>(
        SpecsOf(variables), InitialOf(variables), cluster.self().index);
    LOCKSTEP_ASSIGN_OR_RETURN(
        parts->member,
        TrainingMember::Make(cluster,
                             {.expected_job = options.expected_job,
                              .shared_memory = options.shared_memory,
                              .pollers = options.pollers,
                              .connections = options.connections,
                              .chief_wait = options.chief_wait},
                             parts->workload, Clock::Real()));
    LOCKSTEP_RETURN_IF_ERROR(parts->Host(cluster, flags, options));
    parts->thread = std::thread(
        [&parts = *parts] { parts.workload.handover().End(parts.Run()); });
    return std::unique_ptr<Session>(new Session(std::move(parts)));
  };
  absl::StatusOr<std::unique_ptr<Session>> session = join();
  if (!session.ok()) has_session = false;
  return session;
}

Session::Session(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Session::~Session() {
  if (parts_->process != getpid()) {
    // A forked child has none of the threads, so they cannot be joined: the
    // parts are leaked.
    static_cast<void>(parts_.release());
    return;
  }
  Leave();
  parts_->thread.join();
  has_session = false;
}

void Session::Leave() {
  if (!CheckProcess().ok() || parts_->left.exchange(true)) return;
  parts_->workload.Cancel();
  // Fail() has given a reason already.
  if (!parts_->failed) parts_->RequestStop("the program has ended");
  // A repeated request makes an elastic worker leave at once: the program
  // computes no more passes, so there is none to wait for.
  parts_->member->RequestStop("the program has ended");
}

absl::Status Session::CheckProcess() const {
  if (parts_->process == getpid()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this process was forked from a worker and is none itself; fork before "
      "joining, or start data loaders with the method \"spawn\"");
}

absl::StatusOr<Session::Turn> Session::Next(absl::Duration timeout,
                                            SessionStep& step) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  Parts& parts = *parts_;
  if (parts.open && parts.workload.handover().CheckWanted().ok()) {
    return absl::FailedPreconditionError(
        "the step at hand has no gradients yet; push them before the next step "
        "begins: in Python with step.push(), for a PyTorch model with "
        "step.backward(loss), in C++ with Session::Finish()");
  }
  parts.open = false;
  const Handover::Stage stage = parts.workload.handover().Take(timeout);
  if (stage == Handover::Stage::kNothing) return Turn::kNothing;
  if (stage == Handover::Stage::kEnded) return Turn::kEnded;
  const std::shared_ptr<ParameterMemory> memory = parts.workload.memory();
  if (memory != parts.memory) {
    ++parts.membership;
    // Only once per membership: membership() copies the whole job.
    parts.facts = PassFacts(parts.workload.membership().job, parts.worker,
                            parts.workload.turns());
  }
  parts.memory = memory;
  const Handover::Offer offer = parts.workload.handover().offer();
  step = {offer.pass.step,
          offer.pass.slot,
          parts.facts.ReplicaOf(offer.batch),
          offer.batch,
          parts.facts.SeedOf(offer.pass, offer.batch),
          parts.membership};
  parts.choosing = stage == Handover::Stage::kRows;
  if (parts.choosing) return Turn::kRows;
  parts.handed_in.Begin(parts.workload.variables().size());
  parts.unpulled = false;
  parts.open = true;
  parts.step = step;
  return Turn::kStep;
}

std::optional<SessionStep> Session::StepAgain() {
  const bool again = CheckProcess().ok() && parts_->open &&
                     parts_->handed_in.empty() &&
                     parts_->workload.handover().CheckWanted().ok();
  return again ? std::optional(parts_->step) : std::nullopt;
}

bool Session::is_taken(size_t variable) const {
  return parts_->handed_in.is_taken(variable);
}

absl::Status Session::end() const { return parts_->workload.handover().end(); }

bool Session::carries_job() const {
  return parts_->process == getpid() && parts_->hosted != nullptr &&
         parts_->hosted->carries_job() && !parts_->workload.handover().ended();
}

int Session::exit_code() const {
  // A restart would fail in the same way.
  if (parts_->failed) return kExitFailed;
  // A process that leaves with the job's chief, or with a mirror that the job
  // needs, takes the job along: an exit code of 0 would say that it is done.
  return ExitCodeOf(
      carries_job() ? absl::CancelledError("the program left its job") : end());
}

SessionJob Session::job() const {
  const ChiefClient::Registration membership = parts_->workload.membership();
  const JobConfig& job = membership.job;
  const PassFacts& facts = parts_->facts;
  return {job.name,
          job.seed,
          job.pass_batch_size(),
          job.train_steps,
          parts_->worker,
          membership.num_workers,
          facts.replicas,
          facts.passes_per_step};
}

bool Session::Parts::HasMemory(size_t variable) const {
  return memory != nullptr && variable < workload.variables().size();
}

absl::Span<const std::byte> Session::value(size_t variable) const {
  if (!parts_->HasMemory(variable)) return {};
  return parts_->memory->value(variable);
}

absl::Span<std::byte> Session::gradient(size_t variable) const {
  if (!parts_->HasMemory(variable)) return {};
  return parts_->memory->gradient(variable);
}

std::shared_ptr<const void> Session::owner() const { return parts_->memory; }

absl::Status Session::TakeValue(size_t variable) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  LOCKSTEP_RETURN_IF_ERROR(parts_->CheckOpen());
  if (parts_->handed_in.has(variable)) {
    return absl::FailedPreconditionError(
        "values can be taken once a step is at hand, before the gradient of "
        "their variable is handed in");
  }
  LOCKSTEP_RETURN_IF_ERROR(parts_->memory->TakeValue(variable));
  parts_->handed_in.MarkTaken(variable);
  return absl::OkStatus();
}

absl::Status Session::CheckRows(size_t variable) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  if (variable >= parts_->workload.variables().size() ||
      !parts_->workload.variables()[variable].is_table()) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", variable, " is no table, so it has no rows"));
  }
  if (parts_->choosing) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(parts_->CheckOpen());
  if (parts_->handed_in.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "rows must be chosen before the first gradient of a step is handed in");
}

absl::Status Session::ChooseRows(size_t variable, std::vector<int64_t> ids) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRows(variable));
  LOCKSTEP_RETURN_IF_ERROR(
      parts_->memory->ChooseRows(variable, std::move(ids)));
  parts_->unpulled = !parts_->choosing;
  return absl::OkStatus();
}

absl::Span<const int64_t> Session::rows(size_t variable) const {
  if (!parts_->HasMemory(variable) ||
      !parts_->workload.variables()[variable].is_table()) {
    return {};
  }
  return parts_->memory->rows(variable).ids;
}

absl::Status Session::Pull() {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  parts_->choosing = false;
  return parts_->workload.handover().Chosen();
}

absl::Status Session::PullRows() {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  LOCKSTEP_RETURN_IF_ERROR(parts_->CheckOpen());
  if (!parts_->handed_in.empty()) {
    return absl::FailedPreconditionError(
        "rows must be pulled before the first gradient of a step is handed in");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      parts_->Noted(parts_->workload.handover().PullRows()));
  parts_->unpulled = false;
  return absl::OkStatus();
}

absl::Status Session::Ready(size_t variable) {
  return HandIn(variable, /*absent=*/false);
}

absl::Status Session::Absent(size_t variable) {
  return HandIn(variable, /*absent=*/true);
}

absl::Status Session::HandIn(size_t variable, bool absent) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  Parts& parts = *parts_;
  Handover& handover = parts.workload.handover();
  const std::vector<VariableSpec>& variables = parts.workload.variables();
  if (variable >= variables.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no variable ",
                                                   variable, "; the model has ",
                                                   variables.size()));
  }
  LOCKSTEP_RETURN_IF_ERROR(parts.CheckOpen());
  if (parts.handed_in.has(variable)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the gradient of \"", variables[variable].name,
                     "\" was handed in before in this step"));
  }
  // Gradients go to the rows of the last pull.
  if (parts.unpulled) {
    return absl::FailedPreconditionError(
        "rows of a table were chosen anew in this step and not pulled; call "
        "PullRows() before the first gradient is handed in");
  }
  LOCKSTEP_RETURN_IF_ERROR(parts.Noted(handover.CheckWanted()));
  if (absent) {
    const absl::Span<std::byte> none = parts.memory->gradient(variable);
    std::fill(none.begin(), none.end(), std::byte{0});
  }
  parts.handed_in.Add(variable, absent);
  while (const auto next = parts.handed_in.NextToSend()) {
    LOCKSTEP_RETURN_IF_ERROR(parts.Noted(next->absent
                                             ? handover.Absent(next->variable)
                                             : handover.Ready(next->variable)));
  }
  return absl::OkStatus();
}

absl::Status Session::CheckWanted() {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  return parts_->Noted(parts_->workload.handover().CheckWanted());
}

void Session::BeginReading() {
  parts_->reading.emplace(&SpanRecorder::Of(SpanRecorder::Role::kWorker),
                          Span{.kind = SpanKind::kReadData});
}

void Session::EndReading() { parts_->reading.reset(); }

absl::Status Session::Finish(double loss, int64_t examples) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  Parts& parts = *parts_;
  // Backwards, so that each gradient is sent as soon as it is marked.
  for (size_t v = parts.handed_in.size(); v > 0; --v) {
    if (!parts.handed_in.has(v - 1)) LOCKSTEP_RETURN_IF_ERROR(Absent(v - 1));
  }
  LOCKSTEP_RETURN_IF_ERROR(parts.Noted(
      parts.workload.handover().Done({.loss = loss, .examples = examples})));
  parts.open = false;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> Session::Examples(int64_t num_examples,
                                                       int64_t batch) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  return parts_->workload.Examples(num_examples, batch);
}

absl::Status Session::Report(const NamedFigure& figure) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  return parts_->member->Report(figure);
}

void Session::RequestStop(const std::string& reason) {
  if (CheckProcess().ok()) parts_->RequestStop(reason);
}

void Session::EndInput() {
  if (CheckProcess().ok()) parts_->workload.handover().EndInput();
}

void Session::Fail(const std::string& reason) {
  if (!CheckProcess().ok()) return;
  parts_->failed = true;
  // Exceptions have several lines, and statuses, logs and tables one.
  std::vector<absl::string_view> lines =
      absl::StrSplit(reason, absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  for (absl::string_view& line : lines) line = absl::StripAsciiWhitespace(line);
  parts_->Fail(absl::StrJoin(lines, "; "));
}

}  // namespace lockstep::worker
