#include "tests/testing/process_cluster.h"

#include <signal.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

std::string Describe(const std::string& job, int index) {
  return absl::StrCat("task ", job, " ", index);
}

absl::Status NoSuchTask(const std::string& job, int index) {
  return absl::NotFoundError(
      absl::StrCat("the cluster has no ", Describe(job, index)));
}

absl::Status NotRunning(const std::string& job, int index) {
  return absl::FailedPreconditionError(
      absl::StrCat(Describe(job, index), " is not running"));
}

}  // namespace

std::string ProgramPath(absl::string_view name) {
  return absl::StrCat(LOCKSTEP_PROGRAMS, "/", name);
}

absl::StatusOr<std::unique_ptr<ProcessCluster>> ProcessCluster::Create(
    Options options) {
  if (options.jobs.empty()) {
    return absl::InvalidArgumentError("the cluster has no job; name one");
  }
  std::unique_ptr<ProcessCluster> cluster(
      new ProcessCluster(std::move(options)));
  for (const auto& [name, job] : cluster->options_.jobs) {
    if (job.tasks <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "job ", name, " has ", job.tasks, " tasks; give it at least one"));
    }
    for (int index = 0; index < job.tasks; ++index) {
      absl::StatusOr<cli::PortReservation> port =
          cli::PortReservation::Create();
      if (!port.ok()) return port.status();
      cluster->tasks_.emplace(TaskName(name, index),
                              Task{*std::move(port), nullptr});
    }
  }
  return cluster;
}

void ProcessCluster::SetEnvironment(const std::string& job, int index,
                                    const std::string& name,
                                    const std::string& value) {
  tasks_.at({job, index}).environment[name] = value;
}

void ProcessCluster::UnsetEnvironment(const std::string& job, int index,
                                      const std::string& name) {
  tasks_.at({job, index}).environment.erase(name);
}

void ProcessCluster::AddArgument(const std::string& job, int index,
                                 const std::string& argument) {
  tasks_.at({job, index}).more_args.push_back(argument);
}

absl::Status ProcessCluster::Start(const std::string& job, int index) {
  const auto found = tasks_.find({job, index});
  if (found == tasks_.end()) return NoSuchTask(job, index);
  Task& task = found->second;
  if (task.process != nullptr && !task.process->Poll().has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(Describe(job, index), " is running already"));
  }
  const Program& program = options_.jobs.at(job).program;
  ChildProcess::Options options;
  options.program = program.path;
  options.args = program.args;
  options.args.insert(options.args.end(), task.more_args.begin(),
                      task.more_args.end());
  options.environment = options_.environment;
  for (const auto& [name, value] : task.environment) {
    options.environment[name] = value;
  }
  options.environment["TF_CONFIG"] = *TfConfig(job, index);
  options.log_path =
      absl::StrCat(options_.log_directory, "/", job, "-", index, ".log");
  absl::StatusOr<std::unique_ptr<ChildProcess>> process =
      ChildProcess::Start(options);
  if (!process.ok()) return process.status();
  task.process = *std::move(process);
  return absl::OkStatus();
}

absl::Status ProcessCluster::StartAll() {
  for (const bool servers : {true, false}) {
    for (auto& [name, task] : tasks_) {
      const auto& [job, index] = name;
      const bool runs = task.process != nullptr && !task.process->Poll();
      if (runs || (job == "ps") != servers) continue;
      LOCKSTEP_RETURN_IF_ERROR(Start(job, index));
    }
  }
  return absl::OkStatus();
}

absl::Status ProcessCluster::Signal(const std::string& job, int index,
                                    int signal) {
  absl::StatusOr<ChildProcess*> process = Running(job, index);
  if (!process.ok()) return process.status();
  return (*process)->Signal(signal);
}

absl::Status ProcessCluster::Kill(const std::string& job, int index) {
  absl::StatusOr<ChildProcess*> process = Running(job, index);
  if (!process.ok()) return process.status();
  (*process)->Kill();
  return absl::OkStatus();
}

absl::StatusOr<cli::TaskExit> ProcessCluster::Wait(const std::string& job,
                                                   int index,
                                                   absl::Duration timeout) {
  absl::StatusOr<ChildProcess*> process = Process(job, index);
  if (!process.ok()) return process.status();
  return (*process)->Wait(timeout);
}

absl::Status ProcessCluster::WaitAllSucceed(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const bool late = absl::Now() >= deadline;
    bool all_ended = true;
    for (auto& [name, task] : tasks_) {
      if (task.process == nullptr) continue;
      const std::string who = Describe(name.first, name.second);
      const std::optional<cli::TaskExit> ended = task.process->Poll();
      if (ended.has_value() && !ended->ok()) {
        return absl::AbortedError(absl::StrCat(who, " ", ended->ToString(),
                                               "; its last words:\n",
                                               task.process->LastWords()));
      }
      all_ended = all_ended && ended.has_value();
      if (ended.has_value() || !late) continue;
      return absl::DeadlineExceededError(
          absl::StrCat(who, " still runs after ", absl::FormatDuration(timeout),
                       "; its last words:\n", task.process->LastWords()));
    }
    if (all_ended) return absl::OkStatus();
    absl::SleepFor(kPollInterval);
  }
}

absl::Status ProcessCluster::WaitForLog(const std::string& job, int index,
                                        absl::string_view text,
                                        absl::Duration timeout) {
  absl::StatusOr<ChildProcess*> process = Process(job, index);
  if (!process.ok()) return process.status();
  return (*process)->WaitForLog(text, timeout);
}

absl::StatusOr<std::string> ProcessCluster::ReadLog(const std::string& job,
                                                    int index) const {
  const auto found = tasks_.find({job, index});
  if (found == tasks_.end()) return NoSuchTask(job, index);
  const Task& task = found->second;
  return task.process == nullptr ? "" : task.process->ReadLog();
}

absl::StatusOr<std::string> ProcessCluster::Address(const std::string& job,
                                                    int index) const {
  const auto found = tasks_.find({job, index});
  if (found == tasks_.end()) return NoSuchTask(job, index);
  return absl::StrCat("127.0.0.1:", found->second.port.port());
}

absl::StatusOr<std::string> ProcessCluster::TfConfig(const std::string& job,
                                                     int index) const {
  if (tasks_.find({job, index}) == tasks_.end()) return NoSuchTask(job, index);
  nlohmann::json config;
  for (const auto& [name, task] : tasks_) {
    config["cluster"][name.first].push_back(*Address(name.first, name.second));
  }
  config["task"] = {{"type", job}, {"index", index}};
  return config.dump();
}

absl::StatusOr<ChildProcess*> ProcessCluster::Process(const std::string& job,
                                                      int index) {
  const auto found = tasks_.find({job, index});
  if (found == tasks_.end()) return NoSuchTask(job, index);
  if (found->second.process == nullptr) return NotRunning(job, index);
  return found->second.process.get();
}

absl::StatusOr<ChildProcess*> ProcessCluster::Running(const std::string& job,
                                                      int index) {
  absl::StatusOr<ChildProcess*> process = Process(job, index);
  if (process.ok() && (*process)->Poll().has_value()) {
    return NotRunning(job, index);
  }
  return process;
}

}  // namespace lockstep::testing
