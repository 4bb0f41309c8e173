#include "tests/conformance/simulation/simulation.h"

#include <algorithm>
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
  server::StateFile::Discard("/", header).IgnoreError();
}

}  // namespace

Simulation::Simulation(const Options& options, uint64_t seed, bool tracing)
    : world_(seed),
      job_(options, world_),
      num_places_(job_.worker_place(job_.num_worker_places())),
      processes_(num_places_),
      ended_(num_places_),
      ending_(Ending::kLastStep),
      disturbances_left_(static_cast<int>(world_.Random(7))) {
  if (options.ending.has_value()) {
    ending_ = *options.ending;
  } else if (world_.Chance(60)) {
    ending_ = static_cast<Ending>(1 + world_.Random(3));
  }
  end_comes_ = world_.Random(600);
  world_.tracing = tracing;
  world_.chaos = disturbances_left_ > 0;
  for (int k = 0; k < job_.num_servers(); ++k) DiscardState(job_, k);
  const int beginners = job_.worker_place(options.total_num_replicas);
  for (int place = 0; place < beginners; ++place) Start(place);
  for (int place = beginners; place < num_places_; ++place) {
    ended_[place] = true;  // nobody has been there yet
  }
  next_disturbance_ = world_.Random(400);
}

Simulation::~Simulation() = default;

void Simulation::Start(int place) {
  job_.Trace([&] { return job_.TaskAt(place).ToString() + " starts"; });
  if (place == job_.chief_place()) {
    processes_[place] = std::make_unique<ChiefProcess>(job_);
  } else if (place < job_.worker_place(0)) {
    processes_[place] =
        std::make_unique<ServerProcess>(job_, place - job_.server_place(0));
  } else {
    processes_[place] =
        std::make_unique<WorkerProcess>(job_, place - job_.worker_place(0));
  }
}

void Simulation::Restart(int place, absl::Duration delay) {
  world_.After(delay, [this, place] {
    // Who comes back when the job is over has nobody to ask.
    const bool late = job_.done && place >= job_.worker_place(0);
    if (lost_.count(place) > 0) {
      ended_[place] = !processes_[place];
      return;
    }
    if (!processes_[place] && !ended_[place] && !late) Start(place);
  });
}

void Simulation::Reap() {
  for (int place = 0; place < num_places_; ++place) {
    if (!processes_[place]) continue;
    const Process::State state = processes_[place]->state();
    if (state == Process::State::kRuns) continue;
    job_.Trace([&] {
      return absl::StrCat(job_.TaskAt(place).ToString(), " ends",
                          state == Process::State::kExited ? "" : " anew");
    });
    processes_[place].reset();
    ended_[place] = state == Process::State::kExited;
    if (!ended_[place]) Restart(place, absl::Milliseconds(50));
  }
  std::erase_if(successors_hung_, [](const auto& process) {
    return process->state() != Process::State::kRuns;
  });
}

void Simulation::KillOne(int place) {
  if (!processes_[place]) return;
  ++result_.kills;
  processes_[place].reset();
  const int server = place - job_.server_place(0);
  const bool is_server = server >= 0 && server < job_.num_servers();
  const bool loses = is_server && world_.Chance(200);
  if (loses) {
    ++result_.losses;
    DiscardState(job_, server);
    job_.promises.OnStateLost(server);
  }
  job_.Trace([&] {
    return absl::StrCat(job_.TaskAt(place).ToString(), " is killed",
                        loses ? ", its state is lost" : "");
  });
  Restart(place, world_.RandomDuration(world_.Chance(200) ? absl::Seconds(4)
                                                          : absl::Seconds(1)));
}

void Simulation::HangOne(int place) {
  if (!processes_[place]) return;
  const absl::Duration time = world_.RandomDuration(absl::Seconds(6));
  world_.Hang(processes_[place]->number(), time);
  const bool succeeded = place == job_.chief_place() && world_.Chance(500);
  job_.Trace([&] {
    return absl::StrCat(job_.TaskAt(place).ToString(), " hangs for ",
                        absl::FormatDuration(time),
                        succeeded ? ", another one starts" : "");
  });
  if (!succeeded) return;
  successors_hung_.push_back(std::move(processes_[place]));
  Restart(place, world_.RandomDuration(absl::Seconds(1)));
}

void Simulation::CutOne() {
  const int from = static_cast<int>(world_.Random(num_places_));
  const int to = static_cast<int>(world_.Random(num_places_));
  const absl::Duration time = world_.RandomDuration(absl::Seconds(5));
  const bool both = world_.Chance(500);
  world_.Cut(from, to, time);
  if (both) world_.Cut(to, from, time);
  job_.Trace([&] {
    return absl::StrCat("no way from ", job_.TaskAt(from).ToString(), " to ",
                        job_.TaskAt(to).ToString(), both ? " and back" : "",
                        " for ", absl::FormatDuration(time));
  });
}

void Simulation::Disturb() {
  --disturbances_left_;
  next_disturbance_ = world_.events() + world_.Random(250);
  int place = static_cast<int>(world_.Random(num_places_));
  if (world_.Chance(200)) place = 0;
  if (world_.Chance(job_.options.steered)) return Steer();
  // A chief that starts needs a worker that describes the model.
  const bool needs_chief = job_.workers_lost || job_.full_at_step >= 0;
  if (needs_chief && place == job_.chief_place()) return;
  const int64_t kind = world_.Random(10);
  if (kind < 6) {
    KillOne(place);
  } else if (kind < 8) {
    HangOne(place);
  } else {
    CutOne();
  }
}

ChiefProcess* Simulation::Chief() const {
  const bool answers =
      job_.chief != nullptr && !world_.IsHung(job_.chief->number());
  return answers ? job_.chief : nullptr;
}

void Simulation::Steer() {
  ChiefProcess* chief = Chief();
  if (chief == nullptr) return;
  chief::SettingsChange change;
  const int64_t kind = world_.Random(job_.options.elastic ? 5 : 3);
  if (kind == 0) {
    change.paused = true;
  } else if (kind == 1) {
    change.learning_rate = world_.Chance(500) ? 0.5 : 2;
  } else if (kind == 2) {
    change.replicas_to_aggregate =
        1 + static_cast<int>(world_.Random(job_.options.total_num_replicas));
  } else {
    return kind == 3 ? RemoveOne() : AddOne();
  }
  const auto revision = chief->settings_table().Change(change);
  job_.Trace([&] {
    return absl::StrCat("an operator changes ",
                        kind == 0   ? "pause"
                        : kind == 1 ? "rate"
                                    : "replicas",
                        ": ", revision.status().ToString());
  });
}

void Simulation::RemoveOne() {
  const int worker = static_cast<int>(world_.Random(job_.num_worker_places()));
  const int place = job_.worker_place(worker);
  if (!processes_[place] || world_.IsHung(processes_[place]->number())) return;
  auto& process = static_cast<WorkerProcess&>(*processes_[place]);
  if (!process.IsMember() || Chief() == nullptr ||
      Chief()->in_effect().workers.size() < 2) {
    return;
  }
  job_.Trace([&] { return absl::StrCat("worker ", worker, " is to leave"); });
  lost_.insert(place);
  process.Stop();
}

void Simulation::AddOne() {
  for (int worker = 0; worker < job_.num_worker_places(); ++worker) {
    const int place = job_.worker_place(worker);
    if (processes_[place] || !ended_[place]) continue;
    ended_[place] = false;
    lost_.erase(place);
    return Start(place);
  }
}

void Simulation::Operate() {
  ChiefProcess* chief = Chief();
  if (chief == nullptr || job_.done) return;
  if (chief->in_effect().paused && chief->settings_table().wanted().paused) {
    chief::SettingsChange change;
    change.paused = false;
    chief->settings_table().Change(change).IgnoreError();
  }
  if (job_.Has(PlantedBug::kLeaverStaysAMember)) return;
  // A worker that is gone for good, which the chief need not know.
  for (const int place : lost_) {
    const TaskId task = job_.TaskAt(place);
    if (job_.workers_lost || processes_[place] || chief->IsAlive(task)) {
      continue;
    }
    chief->settings_table().Leave(task.index);
  }
}

void Simulation::BringTheEnd() {
  if (Chief() == nullptr || !Chief()->HasPlan()) return;  // later
  const Ending ending = std::exchange(ending_, Ending::kLastStep);
  if (ending == Ending::kStop) {
    job_.stop_wanted = true;
    Chief()->RequestStop();
  } else if (ending == Ending::kFullTable) {
    job_.full_at_step = std::max<int64_t>(job_.promises.committed(), 0);
  } else {
    job_.workers_lost = true;
    for (int i = 0; i < job_.num_worker_places(); ++i) {
      const int place = job_.worker_place(i);
      processes_[place].reset();
      lost_.insert(place);
      ended_[place] = true;
    }
  }
  job_.Trace([&] {
    return absl::StrCat("the end comes, of kind ", static_cast<int>(ending));
  });
}

void Simulation::CalmDown() {
  job_.Trace([] { return std::string("from here on all is calm"); });
  disturbances_left_ = 0;
  calm_since_ = world_.Now();
  world_.chaos = false;
  world_.HealAll();
  world_.WakeAll();
}

void Simulation::NoteDone() {
  done_noted_ = true;
  if (calm_since_ < world_.Now()) {
    calm_before_done_ = world_.Now() - calm_since_;
  }
  for (int place = 0; place < num_places_; ++place) {
    // A worker that an elastic job has not let in is not told.
    const bool is_worker = place >= job_.worker_place(0);
    const bool fine =
        processes_[place] && !world_.IsHung(processes_[place]->number()) &&
        !(is_worker && job_.options.elastic &&
          !static_cast<WorkerProcess&>(*processes_[place]).IsMember());
    if (fine) must_end_.insert(place);
  }
  CalmDown();
}

bool Simulation::AllEnded() const {
  for (int place = 0; place < num_places_; ++place) {
    if (done_noted_ ? must_end_.count(place) > 0 && processes_[place]
                    : !ended_[place]) {
      return false;
    }
  }
  return true;
}

void Simulation::CheckEnd() {
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

bool Simulation::MayFail() const {
  const auto says = [this](const char* what) {
    return absl::StrContains(job_.ended_because, what);
  };
  return (job_.full_at_step >= 0 && says("no room")) ||
         (job_.workers_lost && says("max_wait")) ||
         (job_.stop_wanted &&
          (says("an operator") || says("the last checkpoint could not")));
}

void Simulation::CheckOutcome() {
  const int64_t saved =
      job_.checkpoints.empty() ? -1 : job_.checkpoints.rbegin()->first;
  int64_t last = job_.options.steps;
  if (job_.ended_as == chief::JobState::kFailed) {
    if (!MayFail()) {
      job_.promises.Break(
          absl::StrCat("P6: the job fails: ", job_.ended_because));
    }
    // A server that is away then may keep its state for itself.
    if (calm_before_done_ < absl::Seconds(30)) return;
    // Then servers keep the state, and the chief says so.
    if (absl::StrContains(job_.ended_because, "last checkpoint")) return;
    last = job_.promises.committed();
  } else if (job_.ended_as == chief::JobState::kStopped) {
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

Simulation::Result Simulation::Run() {
  while (job_.promises.broken().empty() && !AllEnded()) {
    if (!world_.RunOne() || world_.events() > kLongestRun ||
        world_.Now() - calm_since_ > kPatience) {
      break;
    }
    Reap();
    if (job_.done && !done_noted_) NoteDone();
    if (done_noted_) continue;
    if (ending_ != Ending::kLastStep && world_.events() >= end_comes_) {
      BringTheEnd();
    }
    if (!world_.chaos && world_.events() % 100 == 0) Operate();
    if (disturbances_left_ > 0 && world_.events() >= next_disturbance_) {
      Disturb();
    } else if (disturbances_left_ == 0 && world_.chaos &&
               world_.events() >= next_disturbance_) {
      CalmDown();
    }
    if (calm_since_ == absl::InfiniteFuture() && !world_.chaos) CalmDown();
  }
  if (job_.promises.broken().empty()) CheckEnd();
  result_.broken = job_.promises.broken();
  result_.trace.assign(world_.trace().begin(), world_.trace().end());
  result_.events = world_.events();
  result_.went_back = job_.promises.history();
  successors_hung_.clear();
  processes_.clear();
  return result_;
}

}  // namespace lockstep::simulation
