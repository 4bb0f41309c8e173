#include "tests/conformance/simulation/cluster.h"

#include <utility>

#include "absl/strings/match.h"
#include "server/state/file/state_file.h"
#include "tests/conformance/simulation/chief_process.h"
#include "tests/conformance/simulation/server_process.h"
#include "tests/conformance/simulation/worker_process.h"

namespace lockstep::simulation {
namespace {

constexpr int64_t kLongestRun = 60'000;                 // events
constexpr absl::Duration kPatience = absl::Minutes(3);  // when all is calm

void DiscardState(const Job& job, int server) {
  server::StateHeader header;
  header.job_id = job.id;
  header.task_index = server;
  server::StateFile::Discard(job.state_dir(), header).IgnoreError();
}

}  // namespace

Cluster::Cluster(const Options& options, uint64_t seed, bool tracing)
    : world_(seed),
      job_(options, world_),
      num_places_(job_.worker_place(job_.num_worker_places())),
      processes_(num_places_),
      ended_(num_places_) {
  world_.tracing = tracing;
  for (int k = 0; k < job_.num_servers(); ++k) DiscardState(job_, k);
}

Cluster::~Cluster() = default;

void Cluster::StartAll() {
  const int beginners = job_.worker_place(job_.options.total_num_replicas);
  for (int place = 0; place < beginners; ++place) Start(place);
  for (int place = beginners; place < num_places_; ++place) {
    ended_[place] = true;  // no process has been there yet
  }
}

void Cluster::Kill(int place, bool loses_state) {
  processes_[place].reset();
  if (loses_state) LoseState(place - job_.server_place(0));
  job_.Trace([&] {
    return absl::StrCat(job_.TaskAt(place).ToString(), " is killed",
                        loses_state ? ", its state is lost" : "");
  });
}

void Cluster::LoseState(int server) {
  DiscardState(job_, server);
  job_.promises.OnStateLost(server);
}

void Cluster::Hang(int place, absl::Duration time, bool succeeded) {
  world_.Hang(processes_[place]->number(), time);
  job_.Trace([&] {
    return absl::StrCat(job_.TaskAt(place).ToString(), " hangs for ",
                        absl::FormatDuration(time),
                        succeeded ? ", another one starts" : "");
  });
  if (succeeded) successors_hung_.push_back(std::move(processes_[place]));
}

bool Cluster::RunOne() {
  if (!world_.RunOne()) return false;
  Reap();
  if (job_.done && !done_noted_) NoteDone();
  return true;
}

bool Cluster::IsStuck() const {
  return world_.events() > kLongestRun ||
         world_.Now() - calm_since_ > kPatience;
}

void Cluster::Clear() {
  successors_hung_.clear();
  processes_.clear();
}

void Cluster::Start(int place) {
  job_.Trace([&] { return job_.TaskAt(place).ToString() + " starts"; });
  if (place == job_.chief_place()) {
    processes_[place] = std::make_unique<ChiefProcess>(job_);
  } else if (place < job_.worker_place(0)) {
    StartServer(place - job_.server_place(0));
  } else {
    processes_[place] =
        std::make_unique<WorkerProcess>(job_, place - job_.worker_place(0));
  }
}

void Cluster::StartServer(int server) {
  auto fault = ServerProcess::Fault::kNone;
  // Without the state of mirror 0 the job would end.
  if (to_break_.erase(server) > 0 && job_.promises.FirstHasState()) {
    fault = world_.Chance(500) ? ServerProcess::Fault::kDiskIsFull
                               : ServerProcess::Fault::kDamaged;
    job_.Trace([] { return std::string("and cannot open its state"); });
  }
  processes_[job_.server_place(server)] =
      std::make_unique<ServerProcess>(job_, server, fault);
}

bool Cluster::IsBroken(int place) const {
  const bool is_server =
      place >= job_.server_place(0) && place < job_.worker_place(0);
  return is_server && processes_[place] &&
         static_cast<ServerProcess&>(*processes_[place]).IsBroken();
}

bool Cluster::HasBrokenMirror() const {
  for (int place = 0; place < num_places_; ++place) {
    if (IsBroken(place)) return true;
  }
  return false;
}

void Cluster::OnBrokenEnded(int server) {
  const int place = job_.worker_place(server);
  // A worker of a job that is over ends by itself.
  const bool ends = processes_[place] && !job_.done &&
                    processes_[place]->state() == Process::State::kRuns;
  if (ends) Kill(place, /*loses_state=*/false);
}

void Cluster::Restart(int place, absl::Duration delay) {
  world_.After(delay, [this, place] {
    // A process that comes back when the job is over finds no chief.
    const bool late = job_.done && place >= job_.worker_place(0);
    if (lost_.count(place) > 0) {
      ended_[place] = !processes_[place];
      return;
    }
    if (!processes_[place] && !ended_[place] && !late) Start(place);
  });
}

void Cluster::Reap() {
  for (int place = 0; place < num_places_; ++place) {
    if (!processes_[place]) continue;
    const Process::State state = processes_[place]->state();
    if (state == Process::State::kRuns) continue;
    job_.Trace([&] {
      return absl::StrCat(job_.TaskAt(place).ToString(), " ends",
                          state == Process::State::kExited    ? ""
                          : state == Process::State::kRefused ? ", refused"
                                                              : " anew");
    });
    const bool broken = IsBroken(place);
    processes_[place].reset();
    ended_[place] = state == Process::State::kExited ||
                    (state == Process::State::kRefused && !broken);
    if (state == Process::State::kChiefIsGone && must_end_.count(place) > 0) {
      job_.promises.Break(absl::StrCat("P7: ", job_.TaskAt(place).ToString(),
                                       " does not hear that the job is over"));
    }
    if (ended_[place]) continue;
    if (broken) {
      OnBrokenEnded(place - job_.server_place(0));
    } else {
      Restart(place, absl::Milliseconds(50));
    }
  }
  std::erase_if(successors_hung_, [](const auto& process) {
    return process->state() != Process::State::kRuns;
  });
}

ChiefProcess* Cluster::Chief() const {
  const bool answers =
      job_.chief != nullptr && !world_.IsHung(job_.chief->number());
  return answers ? job_.chief : nullptr;
}

void Cluster::CalmDown() {
  job_.Trace([] { return std::string("from here on all is calm"); });
  calm_since_ = world_.Now();
  world_.chaos = false;
  world_.HealAll();
  world_.WakeAll();
}

void Cluster::NoteDone() {
  done_noted_ = true;
  if (calm_since_ < world_.Now()) {
    calm_before_done_ = world_.Now() - calm_since_;
  }
  for (int place = 0; place < num_places_; ++place) {
    const bool fine = processes_[place] &&
                      !world_.IsHung(processes_[place]->number()) &&
                      IsAwaited(place);
    if (fine) must_end_.insert(place);
  }
  CalmDown();
}

bool Cluster::IsServerAwaited(int server) const {
  if (server == 0 || !job_.options.mirrored) return true;
  if (job_.chief == nullptr) return false;
  // The chief may refuse it before it hears of the end.
  if (job_.servers[server]->IsBroken()) return false;
  // One without which the job goes on may not have come back to the chief.
  return job_.chief->TakesPart(server) ||
         (job_.servers[server]->IsMember() &&
          job_.chief->IsAlive({TaskType::kPs, server}));
}

bool Cluster::IsAwaited(int place) const {
  if (place == job_.chief_place()) return true;
  if (place < job_.worker_place(0)) {
    return IsServerAwaited(place - job_.server_place(0));
  }
  if (static_cast<WorkerProcess&>(*processes_[place]).IsMember()) return true;
  // A chief does not wait for processes that come after the last one has left,
  // and an elastic job need not have let the worker in.
  const bool left =
      job_.chief != nullptr && job_.chief->HasLeft(job_.TaskAt(place));
  return !job_.options.elastic && !left;
}

bool Cluster::AllEnded() const {
  for (int place = 0; place < num_places_; ++place) {
    if (done_noted_ ? must_end_.count(place) > 0 && processes_[place]
                    : !ended_[place]) {
      return false;
    }
  }
  return true;
}

void Cluster::CheckEnd() {
  std::string left;
  for (int place = 0; place < num_places_; ++place) {
    if (processes_[place] && (!done_noted_ || must_end_.count(place) > 0)) {
      absl::StrAppend(&left, " ", job_.TaskAt(place).ToString());
    }
  }
  if (!job_.done) {
    job_.promises.Break(
        absl::StrCat("P6: the job does not go on; the chief is ",
                     job_.chief != nullptr ? job_.chief->WaitsFor() : "away"));
  } else if (!left.empty()) {
    job_.promises.Break(
        absl::StrCat("P7: the job is done, yet there are", left));
  } else {
    CheckOutcome();
  }
}

bool Cluster::HasLostLastStep() const {
  return job_.is_compatible() && !job_.input_ends.empty() &&
         job_.compatible.IsBeyond(job_.promises.committed()) &&
         absl::StrContains(job_.ended_because, "the last checkpoint could not");
}

bool Cluster::MayFail() const {
  const auto says = [this](const char* what) {
    return absl::StrContains(job_.ended_because, what);
  };
  return (job_.full_at_step >= 0 && says("no room")) ||
         (job_.workers_lost && says("max_wait")) || HasLostLastStep() ||
         (job_.stop_wanted &&
          (says("an operator") || says("the last checkpoint could not")));
}

void Cluster::CheckOutcome() {
  const int64_t saved =
      job_.checkpoints.empty() ? -1 : job_.checkpoints.rbegin()->first;
  int64_t last =
      job_.input_ends.empty() ? job_.options.steps : job_.promises.committed();
  if (job_.ended_as == JobState::kFailed) {
    if (!MayFail()) {
      job_.promises.Break(
          absl::StrCat("P6: the job fails: ", job_.ended_because));
    }
    // A server that is away then may keep its state for itself.
    if (calm_before_done_ < absl::Seconds(30)) return;
    // Then servers keep the state, and the chief says so.
    if (absl::StrContains(job_.ended_because, "last checkpoint")) return;
    last = job_.promises.committed();
    // The next step is half made, and has overwritten the last one.
    if (job_.is_compatible() && job_.compatible.IsBeyond(last)) return;
  } else if (job_.ended_as == JobState::kStopped) {
    if (!job_.stop_wanted) {
      job_.promises.Break(
          absl::StrCat("P6: the job stops: ", job_.ended_because));
    }
    last = job_.promises.committed();
  }
  if (saved != last && last >= 0) {
    job_.promises.Break(absl::StrCat("P7: there is no checkpoint of step ",
                                     last, ", at which the job ended"));
  }
}

}  // namespace lockstep::simulation
