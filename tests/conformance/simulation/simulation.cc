#include "tests/conformance/simulation/simulation.h"

#include <utility>

#include "server/state/file/state_file.h"
#include "tests/conformance/simulation/chief_process.h"
#include "tests/conformance/simulation/server_process.h"
#include "tests/conformance/simulation/worker_process.h"

namespace lockstep::simulation {
namespace {

constexpr int64_t kLongestRun = 60'000;                 // events
constexpr absl::Duration kPatience = absl::Minutes(3);  // when all is calm

void DiscardState(const Job& job, int server) {
  StateHeader header;
  header.job_id = job.id;
  header.task_index = server;
  StateFile::Discard("/", header).IgnoreError();
}

}  // namespace

Simulation::Simulation(const Options& options, uint64_t seed, bool tracing)
    : world_(seed),
      job_(options, world_),
      num_places_(job_.worker_place(options.total_num_replicas)),
      processes_(num_places_),
      ended_(num_places_),
      disturbances_left_(static_cast<int>(world_.Random(7))) {
  world_.tracing = tracing;
  world_.chaos = disturbances_left_ > 0;
  for (int k = 0; k < job_.num_servers(); ++k) DiscardState(job_, k);
  for (int place = 0; place < num_places_; ++place) Start(place);
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
  const int64_t kind = world_.Random(10);
  if (kind < 6) {
    KillOne(place);
  } else if (kind < 8) {
    HangOne(place);
  } else {
    CutOne();
  }
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
  for (int place = 0; place < num_places_; ++place) {
    const bool fine =
        processes_[place] && !world_.IsHung(processes_[place]->number());
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
  } else if (job_.checkpoints.empty() ||
             job_.checkpoints.rbegin()->first != job_.options.steps) {
    job_.promises.Break("P7: there is no checkpoint of the last step");
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
