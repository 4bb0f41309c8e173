#include "tests/conformance/simulation/script.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/conformance/simulation/chief_process.h"
#include "tests/conformance/simulation/worker_process.h"

namespace lockstep::simulation {

Script::Script(const Options& options, uint64_t seed)
    : Cluster(options, seed, /*tracing=*/true) {}

WorkerProcess& Script::worker(int worker) {
  return static_cast<WorkerProcess&>(*processes_[job_.worker_place(worker)]);
}

void Script::Kill(int place, bool loses_state) {
  Cluster::Kill(place, loses_state);
}

void Script::ReplaceChief() {
  Cluster::Hang(job_.chief_place(), absl::Hours(1), /*succeeded=*/true);
  Start(job_.chief_place());
}

ChiefProcess& Script::old_chief() {
  return static_cast<ChiefProcess&>(*successors_hung_.back());
}

void Script::WakeOldChief() {
  job_.Trace([] { return std::string("the older chief goes on"); });
  world_.TakePlace(old_chief().number());
  job_.chief = &old_chief();
  world_.WakeUp(old_chief().number());
}

bool Script::Until(const std::string& what, const std::function<bool()>& over,
                   absl::Duration within) {
  const absl::Time deadline = world_.Now() + within;
  while (!over()) {
    if (!job_.promises.broken().empty()) return false;
    if (world_.Now() > deadline || !RunOne()) {
      job_.promises.Break(absl::StrCat("the schedule waits for ", what));
      return false;
    }
  }
  return true;
}

bool Script::UntilCommitted(int64_t step) {
  return Until(absl::StrCat("step ", step),
               [this, step] { return job_.promises.committed() >= step; });
}

void Script::For(absl::Duration time) {
  bool over = false;
  world_.After(time, [&over] { over = true; });
  Until(
      "time to pass", [&over] { return over; }, 2 * time);
}

std::vector<std::string> Script::Broken() const {
  std::vector<std::string> broken = job_.promises.broken();
  if (!broken.empty()) {
    broken.push_back(absl::StrCat("\n", absl::StrJoin(world_.trace(), "\n")));
  }
  return broken;
}

std::vector<std::string> Script::Finish() {
  if (job_.promises.broken().empty()) CalmDown();
  while (job_.promises.broken().empty() && !AllEnded()) {
    if (!RunOne() || IsStuck()) break;
  }
  if (job_.promises.broken().empty()) CheckEnd();
  std::vector<std::string> broken = Broken();
  Clear();
  return broken;
}

}  // namespace lockstep::simulation
