#include "tests/conformance/simulation/simulation.h"

#include <algorithm>
#include <utility>

#include "common/plan/number_tree.h"
#include "tests/conformance/simulation/chief_process.h"
#include "tests/conformance/simulation/server_process.h"
#include "tests/conformance/simulation/worker_process.h"

namespace lockstep::simulation {
namespace {

// A round in which a mirror could not open its state is over by then.
constexpr absl::Duration kHeardOfBroken = absl::Seconds(15);

}  // namespace

Simulation::Simulation(const Options& options, uint64_t seed, bool tracing)
    : Cluster(options, seed, tracing),
      ending_(Ending::kLastStep),
      disturbances_left_(static_cast<int>(world_.Random(7))) {
  if (options.ending.has_value()) {
    ending_ = *options.ending;
  } else if (world_.Chance(60)) {
    ending_ = static_cast<Ending>(1 + world_.Random(4));
  }
  end_comes_ = world_.Random(600);
  world_.chaos = disturbances_left_ > 0;
  StartAll();
  next_disturbance_ = world_.Random(400);
}

void Simulation::KillOne(int place) {
  if (!processes_[place]) return;
  ++result_.kills;
  const int server = place - job_.server_place(0);
  const bool is_server = server >= 0 && server < job_.num_servers();
  bool loses = is_server && world_.Chance(200);
  if (IsBroken(place)) first_keeps_until_ = world_.Now() + kHeardOfBroken;
  if (server == 0 && (HasBrokenMirror() || world_.Now() < first_keeps_until_)) {
    loses = false;
  }
  if (loses) ++result_.losses;
  Kill(place, loses);
  absl::Duration time = world_.RandomDuration(
      world_.Chance(200) ? absl::Seconds(4) : absl::Seconds(1));
  if (is_server && MayComeBroken(server) && world_.Chance(150)) {
    BreakNext(server);
    // A round that has found its state is over by then.
    time += absl::Seconds(2);
    pair_back_ = world_.Now() + time + absl::Seconds(2);
  }
  Restart(place, time);
}

bool Simulation::MayComeBroken(int server) const {
  return server > 0 && job_.has_elastic_mirrors() && !HasBrokenMirror() &&
         lost_.count(job_.worker_place(server)) == 0 &&
         job_.input_ends.empty() && world_.Now() >= pair_back_;
}

void Simulation::OnBrokenEnded(int server) {
  Cluster::OnBrokenEnded(server);
  if (world_.Chance(300)) {
    ++result_.losses;
    LoseState(server);
    job_.Trace([&] { return absl::StrCat("ps ", server, " loses its state"); });
  }
  const absl::Duration time = world_.RandomDuration(absl::Seconds(5));
  pair_back_ = std::max(pair_back_, world_.Now() + time + absl::Seconds(2));
  first_keeps_until_ = world_.Now() + kHeardOfBroken;
  for (const int place :
       {job_.server_place(server), job_.worker_place(server)}) {
    Restart(place, time + world_.RandomDuration(absl::Seconds(2)));
  }
}

void Simulation::HangOne(int place) {
  if (!processes_[place]) return;
  const absl::Duration time = world_.RandomDuration(absl::Seconds(6));
  // What an operator has asked of a chief its successor does not know.
  const bool succeeded = place == job_.chief_place() && world_.Chance(500) &&
                         !job_.stop_wanted && job_.input_ends.empty();
  Hang(place, time, succeeded);
  if (succeeded) Restart(place, world_.RandomDuration(absl::Seconds(1)));
}

void Simulation::LosePair() {
  const int worker =
      1 + static_cast<int>(world_.Random(job_.num_servers() - 1));
  if (!MayLosePair(worker)) return;
  // Others make that step again, of fewer gradients.
  if (world_.Chance(600)) {
    to_lose_ = worker;
  } else {
    TakePairAway(worker);
  }
}

bool Simulation::MayLosePair(int worker) const {
  const int place = job_.worker_place(worker);
  // If the state is with such a pair, max_wait must suffice for its return.
  return processes_[place] && processes_[job_.server_place(worker)] &&
         lost_.count(place) == 0 && job_.input_ends.empty() &&
         !HasBrokenMirror() && world_.Now() >= pair_back_;
}

void Simulation::TakePairAway(int worker) {
  if (!MayLosePair(worker)) return;
  const bool for_good = world_.Chance(250) && AnotherStays(worker);
  const bool loses = world_.Chance(300);
  result_.kills += 2;
  if (loses) ++result_.losses;
  const int mirror = job_.server_place(worker);
  const int place = job_.worker_place(worker);
  Kill(place, false);
  Kill(mirror, loses);
  if (for_good) {
    gone_.insert(worker);
    for (const int one : {mirror, place}) {
      lost_.insert(one);
      ended_[one] = true;
    }
    return;
  }
  // Two leases pass before the job goes on without them.
  const absl::Duration time =
      1.5 * job_.config.lease + world_.RandomDuration(2 * job_.config.lease);
  pair_back_ = world_.Now() + time + absl::Seconds(2);
  Restart(mirror, time + world_.RandomDuration(absl::Seconds(2)));
  Restart(place, time + world_.RandomDuration(absl::Seconds(2)));
  if (world_.Chance(250)) BreakNext(worker);
}

void Simulation::BringPairBack(int worker) {
  gone_.erase(worker);
  for (const int place :
       {job_.server_place(worker), job_.worker_place(worker)}) {
    if (processes_[place]) continue;
    // No worker comes any more once all are lost.
    if (job_.workers_lost && place == job_.worker_place(worker)) continue;
    ended_[place] = false;
    lost_.erase(place);
    Start(place);
  }
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
  if (job_.has_elastic_mirrors() && job_.num_servers() > 1 &&
      world_.Chance(400)) {
    return LosePair();
  }
  // A chief that starts needs a process that describes the model.
  const bool needs_chief = job_.workers_lost || job_.full_at_step >= 0;
  if (needs_chief && place == job_.chief_place()) return;
  const bool is_server =
      place >= job_.server_place(0) && place < job_.worker_place(0);
  if (is_server && !job_.input_ends.empty()) return;
  const int64_t kind = world_.Random(10);
  // Members that hang are the ones that are replaced.
  const bool hangs_more = job_.options.stall_timeout < job_.config.lease;
  if (kind < (hangs_more ? 3 : 6)) {
    KillOne(place);
  } else if (kind < 8) {
    HangOne(place);
  } else {
    CutOne();
  }
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
  if (kind == 2 && job_.options.shared) return Regroup();
  const auto revision = chief->settings_table().Change(change);
  job_.Trace([&] {
    return absl::StrCat("an operator changes ",
                        kind == 0   ? "pause"
                        : kind == 1 ? "rate"
                                    : "replicas",
                        ": ", revision.status().ToString());
  });
}

void Simulation::Regroup() {
  const int numbers = job_.options.replicas_to_aggregate;
  int block = 1 << world_.Random(3);
  while (block > numbers) block /= 2;
  job_.Trace([&] { return absl::StrCat("blocks of ", block); });
  Chief()->settings_table().Tune(BlocksOf(numbers, block));
}

bool Simulation::AnotherStays(int worker) const {
  if (Chief() == nullptr) return false;
  const std::vector<int> workers = Chief()->in_effect().workers;
  // A chief that was started again need not know that others have left.
  return std::any_of(workers.begin(), workers.end(), [&](int other) {
    return other != worker && lost_.count(job_.worker_place(other)) == 0;
  });
}

void Simulation::RemoveOne() {
  const int worker = static_cast<int>(world_.Random(job_.num_worker_places()));
  const int place = job_.worker_place(worker);
  if (!processes_[place] || world_.IsHung(processes_[place]->number())) return;
  auto& process = static_cast<WorkerProcess&>(*processes_[place]);
  if (!process.IsMember() || !AnotherStays(worker)) return;
  job_.Trace([&] { return absl::StrCat("worker ", worker, " is to leave"); });
  lost_.insert(place);
  process.Stop();
}

void Simulation::AddOne() {
  for (int worker = 0; worker < job_.num_worker_places(); ++worker) {
    const int place = job_.worker_place(worker);
    if (processes_[place] || !ended_[place]) continue;
    if (gone_.count(worker) > 0) return BringPairBack(worker);
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
  // Without ps 0's state the job waits for mirrors that may have it.
  if (!gone_.empty() && !job_.promises.FirstHasState()) {
    BringPairBack(*gone_.begin());
  }
  if (job_.Has(PlantedBug::kLeaverStaysAMember)) return;
  // A worker that is gone for good, which the chief need not know.
  for (const int place : lost_) {
    const TaskId task = job_.TaskAt(place);
    // The chief itself notices that a mirror does not come back.
    if (task.type != TaskType::kWorker || gone_.count(task.index) > 0) continue;
    if (job_.workers_lost || processes_[place] || chief->IsAlive(task)) {
      continue;
    }
    chief->settings_table().Leave(task.index);
  }
}

void Simulation::BringTheEnd() {
  const bool has_chief = processes_[job_.chief_place()] != nullptr;
  if (!has_chief || Chief() == nullptr || !Chief()->HasPlan()) return;  // later
  // Once its workers have left, the servers' processes alone know the model.
  const bool servers_know =
      std::all_of(job_.servers.begin(), job_.servers.end(),
                  [](const ServerProcess* server) {
                    return server != nullptr && server->HasShard();
                  });
  if (ending_ == Ending::kInput && !servers_know) return;
  const Ending ending = std::exchange(ending_, Ending::kLastStep);
  if (ending == Ending::kStop) {
    job_.stop_wanted = true;
    Chief()->RequestStop();
  } else if (ending == Ending::kFullTable) {
    job_.full_at_step = std::max<int64_t>(job_.promises.committed(), 0);
  } else if (ending == Ending::kInput) {
    for (int i = 0; i < job_.num_worker_places(); ++i) {
      job_.input_ends[i] =
          std::max<int64_t>(job_.promises.committed(), 0) + world_.Random(3);
    }
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

Simulation::Result Simulation::Run() {
  while (job_.promises.broken().empty() && !AllEnded()) {
    if (!RunOne() || IsStuck()) break;
    if (done_noted_) continue;
    if (ending_ != Ending::kLastStep && world_.events() >= end_comes_) {
      BringTheEnd();
    }
    if (!world_.chaos && world_.events() % 100 == 0) Operate();
    if (!world_.chaos) to_lose_.reset();
    if (to_lose_.has_value() && job_.promises.IsAhead(*to_lose_)) {
      TakePairAway(*std::exchange(to_lose_, std::nullopt));
    }
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
  result_.tally = job_.tally;
  Clear();
  return result_;
}

}  // namespace lockstep::simulation
