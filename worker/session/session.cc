#include "worker/session/session.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster.h"
#include "common/program/main_support.h"
#include "common/trace/span_recorder.h"
#include "worker/session/handed_in.h"
#include "worker/session/pass_facts.h"
#include "worker/session/program_member.h"
#include "worker/session/program_membership.h"
#include "worker/session/program_workload.h"
#include "worker/session/session_variables.h"

namespace lockstep::worker {
namespace {

// A process has one log and one set of certificates, so one session.
std::atomic<bool> has_session{false};

// The examples of one pass: the sums over a job must fit into 64 bits.
constexpr int64_t kMostExamples = std::numeric_limits<int32_t>::max();

}  // namespace

struct Session::Parts {
  Parts(std::vector<VariableSpec> specs,
        std::vector<absl::Span<const std::byte>> initial, bool early, int index)
      : workload(std::move(specs), std::move(initial), early), worker(index) {}

  // The steps from now on, and the values, are those of this membership.
  void Adopt(const std::shared_ptr<const ProgramMembership>& adopted);
  // False before the first step, and if there is no such variable.
  bool HasMemory(size_t variable) const;
  // OK while a step is open; kAborted if it is over without this pass.
  absl::Status CheckOpen() {
    return open ? absl::OkStatus() : workload.handover().CheckWanted();
  }
  // As CheckOpen(), for calls that must follow BeginGradients().
  absl::Status CheckGradients() {
    LOCKSTEP_RETURN_IF_ERROR(CheckOpen());
    if (!step.early) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "the step began before its values had arrived: call BeginGradients() "
        "until it returns true, before the first gradient is written");
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
  std::unique_ptr<ProgramMember> member;
  std::thread thread;
  std::atomic<bool> failed = false;  // Session::Fail() has been called
  std::atomic<bool> left = false;    // Session::Leave() has been called
  // The current pass.
  bool open = false;
  SessionStep step;  // `early` until BeginGradients() has returned true
  std::shared_ptr<const ProgramMembership> membership;  // null before the first
  int64_t memberships = 0;
  PassFacts facts;
  bool choosing = false;  // rows, before the pull
  bool unpulled = false;  // rows were chosen after it
  HandedIn handed_in;
  std::optional<SpanTimer> reading;
};

absl::StatusOr<std::unique_ptr<Session>> Session::Join(
    const Options& options, const std::vector<SessionVariable>& variables) {
  LOCKSTEP_RETURN_IF_ERROR(CheckVariables(variables));
  if (has_session.exchange(true)) {
    return absl::FailedPreconditionError(
        "this process is a worker already; a process can have one at a time: "
        "close the first, start another process, or give one worker the "
        "variables of all models, as Worker(torch.nn.ModuleDict(...)) does");
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
    auto parts =
        std::make_unique<Parts>(SpecsOf(variables), InitialOf(variables),
                                options.early_passes, cluster.self().index);
    LOCKSTEP_ASSIGN_OR_RETURN(
        parts->member,
        ProgramMember::Make(cluster, flags, options, parts->workload));
    parts->thread = std::thread([&parts = *parts] {
      parts.workload.handover().End(parts.member->Run());
    });
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
  if (!parts_->failed) parts_->member->RequestStop("the program has ended");
  // The program computes no more passes, so there is none to wait for.
  parts_->member->LeaveAtOnce();
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
  Handover::Offer offer;
  const Handover::Stage stage = parts.workload.handover().Take(timeout, offer);
  if (stage == Handover::Stage::kNothing) return Turn::kNothing;
  if (stage == Handover::Stage::kEnded) {
    const ProgramWorkload::LastValues last = parts.workload.last_values();
    if (last.membership != nullptr) parts.Adopt(last.membership);
    return Turn::kEnded;
  }
  parts.Adopt(offer.membership);
  step = {offer.pass.step,
          offer.pass.slot,
          parts.facts.ReplicaOf(offer.batch),
          offer.batch,
          parts.facts.SeedOf(offer.pass, offer.batch),
          parts.memberships,
          offer.early};
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

std::optional<int64_t> Session::last_step() const {
  if (!parts_->workload.handover().ended()) return std::nullopt;
  const ProgramWorkload::LastValues last = parts_->workload.last_values();
  // Or Next() has not said yet that the job has ended.
  if (last.membership == nullptr || last.membership != parts_->membership) {
    return std::nullopt;
  }
  // The program may have taken values in the pass for which these came.
  const bool given_out = parts_->step.number >= last.of.step;
  return last.of.whole || !given_out ? std::optional(last.of.step)
                                     : std::nullopt;
}

bool Session::is_taken(size_t variable) const {
  return parts_->handed_in.is_taken(variable);
}

absl::Status Session::end() const { return parts_->workload.handover().end(); }

bool Session::carries_job() const {
  return parts_->process == getpid() && parts_->member->carries_job() &&
         !parts_->workload.handover().ended();
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
  if (parts_->membership == nullptr) return {};
  const ChiefClient::Registration& membership =
      parts_->membership->registration;
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

void Session::Parts::Adopt(
    const std::shared_ptr<const ProgramMembership>& adopted) {
  if (adopted == membership) return;
  ++memberships;
  membership = adopted;
  facts = PassFacts(adopted->registration.job, worker, adopted->turns);
}

bool Session::Parts::HasMemory(size_t variable) const {
  return membership != nullptr && variable < workload.variables().size();
}

absl::Span<const std::byte> Session::value(size_t variable) const {
  if (!parts_->HasMemory(variable)) return {};
  return parts_->membership->memory->value(variable);
}

absl::Span<std::byte> Session::gradient(size_t variable) const {
  if (!parts_->HasMemory(variable)) return {};
  return parts_->membership->memory->gradient(variable);
}

std::shared_ptr<const void> Session::owner() const {
  if (parts_->membership == nullptr) return nullptr;
  return parts_->membership->memory;
}

absl::Status Session::TakeValue(size_t variable) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  LOCKSTEP_RETURN_IF_ERROR(parts_->CheckGradients());
  if (parts_->handed_in.has(variable)) {
    return absl::FailedPreconditionError(
        "values can be taken once a step is at hand, before the gradient of "
        "their variable is handed in");
  }
  LOCKSTEP_RETURN_IF_ERROR(parts_->membership->memory->TakeValue(variable));
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
      parts_->membership->memory->ChooseRows(variable, std::move(ids)));
  parts_->unpulled = !parts_->choosing;
  return absl::OkStatus();
}

absl::Span<const int64_t> Session::rows(size_t variable) const {
  if (!parts_->HasMemory(variable) ||
      !parts_->workload.variables()[variable].is_table()) {
    return {};
  }
  return parts_->membership->memory->rows(variable).ids;
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

absl::Status Session::AwaitValues(size_t first, size_t count) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  LOCKSTEP_RETURN_IF_ERROR(parts_->CheckOpen());
  const size_t all = parts_->workload.variables().size();
  if (first > all || count > all - first) {
    return absl::InvalidArgumentError(
        absl::StrCat("variables ", first, " to ", first, " + ", count,
                     " are not in the model, which has ", all));
  }
  if (!parts_->step.early) return absl::OkStatus();
  return parts_->Noted(parts_->workload.handover().NeedValues(first, count));
}

absl::StatusOr<bool> Session::BeginGradients(absl::Duration timeout) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProcess());
  LOCKSTEP_RETURN_IF_ERROR(parts_->CheckOpen());
  if (!parts_->step.early) return true;
  const absl::StatusOr<bool> begun =
      parts_->workload.handover().BeginGradients(timeout);
  LOCKSTEP_RETURN_IF_ERROR(parts_->Noted(begun.status()));
  parts_->step.early = !*begun;
  return begun;
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
  LOCKSTEP_RETURN_IF_ERROR(parts.CheckGradients());
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
    const absl::Span<std::byte> none =
        parts.membership->memory->gradient(variable);
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
  LOCKSTEP_RETURN_IF_ERROR(parts.CheckGradients());
  if (examples < 0 || examples > kMostExamples) {
    return absl::InvalidArgumentError(absl::StrCat(
        "examples is ", examples, "; it must be 0 to ", kMostExamples));
  }
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
  if (CheckProcess().ok()) parts_->member->RequestStop(reason);
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
  parts_->member->Fail(absl::StrJoin(lines, "; "));
}

}  // namespace lockstep::worker
