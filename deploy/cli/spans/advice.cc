#include "deploy/cli/spans/advice.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::cli {
namespace {

constexpr size_t kMostAdvice = 3;
constexpr double kLeastShare = 0.05;
// From here on a worker is the one that the others wait for.
constexpr double kMostlyOne = 0.6;

int64_t Of(const PathTimes& times, PathPart part) {
  return times[static_cast<int>(part)];
}

int64_t OnTheWay(const PathTimes& times) {
  return Of(times, PathPart::kToken) + Of(times, PathPart::kReceiving) +
         Of(times, PathPart::kAnnouncing) + Of(times, PathPart::kSending);
}

// Why the last worker of a step is later than the others: by how much it took
// longer for each thing than the fastest other worker of the set.
struct Delay {
  int64_t unknown = 0;
  int64_t absent = 0;
  int64_t reading = 0;
  int64_t computing = 0;
  int64_t network = 0;
};

Delay DelayOf(const StepPath& path) {
  Delay least;
  bool first = true;
  const auto least_of = [&](int64_t& value, int64_t other) {
    value = first ? other : std::min(value, other);
  };
  for (const auto& [worker, of] : path.workers) {
    if (worker == path.worker) continue;
    least_of(least.unknown, Of(of.times, PathPart::kUnknown));
    least_of(least.absent, Of(of.times, PathPart::kAbsent));
    least_of(least.reading, Of(of.times, PathPart::kReading));
    least_of(least.computing, Of(of.times, PathPart::kComputing));
    least_of(least.network, OnTheWay(of.times));
    first = false;
  }
  const PathTimes& own = path.workers.at(path.worker).times;
  const auto more = [](int64_t own_time, int64_t other) {
    return std::max<int64_t>(own_time - other, 0);
  };
  return {more(Of(own, PathPart::kUnknown), least.unknown),
          more(Of(own, PathPart::kAbsent), least.absent),
          more(Of(own, PathPart::kReading), least.reading),
          more(Of(own, PathPart::kComputing), least.computing),
          more(OnTheWay(own), least.network)};
}

// How the pushes came.
struct Pushes {
  int64_t all = 0;
  int64_t shared = 0;
  int64_t bfloat16 = 0;
  int64_t same_host = 0;  // and not shared
};

Pushes CountPushes(const JobTrace& trace) {
  std::map<std::string, std::string> hosts;
  for (const TaskTrace& task : trace.tasks) hosts[task.task] = task.host;
  Pushes pushes;
  for (const TaskTrace& task : trace.tasks) {
    for (const Span& span : task.spans) {
      if (span.kind != SpanKind::kReceive) continue;
      ++pushes.all;
      const bool shared = (span.flags & Span::kShared) != 0;
      if (shared) ++pushes.shared;
      if ((span.flags & Span::kBFloat16) != 0) ++pushes.bfloat16;
      // Hosts are compared by name; a task that handed none in is on no known
      // host.
      const auto worker = hosts.find(absl::StrCat("worker ", span.peer));
      if (!shared && worker != hosts.end() && !task.host.empty() &&
          worker->second == task.host) {
        ++pushes.same_host;
      }
    }
  }
  return pushes;
}

// The remedy where workers wait for the last gradient of a step, which is now
// one worker's, now another's.
Remedy ForLateness(const Explanation& sums) {
  if (sums.shared_work) return Remedy::kSmallerMicroBatches;
  return sums.limits.no_backups ? Remedy::kEqualWorkers : Remedy::kBackup;
}

// Sums up the paths of steps, and turns the sums into advice.
class Adviser {
 public:
  Adviser(const JobTrace& trace, const std::vector<StepPath>& paths,
          const Explanation& sums)
      : sums_(sums), pushes_(CountPushes(trace)) {
    for (const StepPath& path : paths) {
      total_ += path.duration();
      AddStep(path);
    }
  }

  std::vector<Advice> All() const {
    std::vector<Advice> all;
    AdviseOnWaiting(all);
    AdviseOnReading(all);
    AdviseOnNetwork(all);
    AdviseOnUpdates(all);
    // Always there, so that there is advice in any case.
    all.push_back({.remedy = Remedy::kMoreCompute, .share = Share(computing_)});
    Merge(all);
    // Stable: of equal shares the order above decides.
    std::stable_sort(
        all.begin(), all.end(),
        [](const Advice& a, const Advice& b) { return a.share > b.share; });
    while (all.size() > 1 &&
           (all.size() > kMostAdvice || all.back().share < kLeastShare)) {
      all.pop_back();
    }
    return all;
  }

 private:
  // Puts the time in which all others wait for the last worker of a step down
  // to the activities that took that worker longer, and the rest to those of
  // all.
  void AddStep(const StepPath& path) {
    Delay delay = path.workers.size() > 1 ? DelayOf(path) : Delay();
    const int64_t more = delay.unknown + delay.absent + delay.reading +
                         delay.computing + delay.network;
    // The worker may have been slower in one thing and faster in another, so
    // that its delays sum up to more than its lateness.
    const double late = more > 0
                            ? std::min(1.0, static_cast<double>(path.lateness) /
                                                static_cast<double>(more))
                            : 0;
    const auto part = [late](int64_t time) {
      return static_cast<int64_t>(late * static_cast<double>(time));
    };
    late_unknown_[path.worker] += part(delay.unknown);
    late_absent_[path.worker] += part(delay.absent);
    late_reading_[path.worker] += part(delay.reading);
    late_computing_[path.worker] += part(delay.computing);
    late_network_[path.worker] += part(delay.network);
    absent_ += path.of(PathPart::kAbsent) - part(delay.absent);
    reading_ += path.of(PathPart::kReading) - part(delay.reading);
    computing_ += path.of(PathPart::kComputing) - part(delay.computing);
    network_ += OnTheWay(path.times) - part(delay.network);
    updating_ += path.of(PathPart::kUpdating);
    busiest_[path.server] += path.of(PathPart::kUpdating);
    most_parts_ = std::max(most_parts_, path.parts);
    last_updates_ += path.last_update;
  }

  // One remedy for two reasons is one piece of advice.
  static void Merge(std::vector<Advice>& all) {
    for (auto one = all.begin(); one != all.end(); ++one) {
      for (auto other = std::next(one); other != all.end();) {
        if (other->remedy != one->remedy) {
          ++other;
          continue;
        }
        // The larger reason names the worker and the server.
        if (other->share > one->share) {
          one->worker = other->worker;
          one->server = other->server;
        }
        one->share += other->share;
        other = all.erase(other);
      }
    }
  }

  double Share(int64_t time) const {
    return total_ > 0 ? static_cast<double>(time) / static_cast<double>(total_)
                      : 0;
  }

  static std::pair<int, int64_t> Largest(const std::map<int, int64_t>& times) {
    std::pair<int, int64_t> largest{-1, 0};
    for (const auto& [who, time] : times) {
      if (time > largest.second) largest = {who, time};
    }
    return largest;
  }

  static int64_t SumOf(const std::map<int, int64_t>& times) {
    int64_t sum = 0;
    for (const auto& [who, time] : times) sum += time;
    return sum;
  }

  // One worker's, if most of the time is its own.
  static int MostlyOf(const std::map<int, int64_t>& times) {
    const auto [who, time] = Largest(times);
    const double all = static_cast<double>(SumOf(times));
    return static_cast<double>(time) >= kMostlyOne * all ? who : -1;
  }

  void AdviseOnWaiting(std::vector<Advice>& all) const {
    // A worker that is gone for a while is a matter of its death, if the chief
    // knows of one.
    int64_t gone = absent_ + SumOf(late_absent_);
    int most_deaths = -1;
    for (const auto& [worker, deaths] : sums_.deaths) {
      if (most_deaths < 0 || deaths > sums_.deaths.at(most_deaths)) {
        most_deaths = worker;
      }
    }
    std::map<int, int64_t> backup = late_computing_;
    for (const auto& [worker, time] : late_unknown_) backup[worker] += time;
    if (most_deaths >= 0) {
      all.push_back({.remedy = Remedy::kMendWorker,
                     .share = Share(gone),
                     .worker = most_deaths});
    } else {
      for (const auto& [worker, time] : late_absent_) backup[worker] += time;
    }
    all.push_back({.remedy = ForLateness(sums_),
                   .share = Share(SumOf(backup)),
                   .worker = sums_.shared_work ? -1 : MostlyOf(backup)});
    all.push_back({.remedy = Remedy::kWorkerNetwork,
                   .share = Share(SumOf(late_network_)),
                   .worker = MostlyOf(late_network_)});
    // Without one worker that stands out, any may be late.
    if (all.back().worker < 0) all.back().remedy = ForLateness(sums_);
  }

  void AdviseOnReading(std::vector<Advice>& all) const {
    all.push_back(
        {.remedy = Remedy::kFasterReader,
         .share = Share(reading_ + SumOf(late_reading_)),
         .worker = sums_.workers > 1 && SumOf(late_reading_) > reading_
                       ? MostlyOf(late_reading_)
                       : -1});
  }

  void AdviseOnNetwork(std::vector<Advice>& all) const {
    Remedy remedy = Remedy::kMoreServers;
    if (sums_.shared_work) {
      // Its gradients never are in shared memory. Rounded ones are not added
      // up, nor those of short variables.
      if (pushes_.bfloat16 == 0 && !sums_.limits.no_larger_pushes) {
        remedy = Remedy::kLargerPushes;
      }
    } else if (pushes_.same_host * 2 > pushes_.all) {
      if (sums_.limits.no_shared_memory) return;
      remedy = Remedy::kSharedMemory;
    } else if (pushes_.shared * 2 > pushes_.all) {
      return;  // the rest is the time of calls, which nothing mends
    } else if (pushes_.bfloat16 * 2 < pushes_.all &&
               !sums_.limits.no_bfloat16) {
      remedy = Remedy::kBFloat16;
    }
    // Mirrors are as many as the workers.
    if (remedy == Remedy::kMoreServers && sums_.limits.no_servers) return;
    all.push_back({.remedy = remedy, .share = Share(network_)});
  }

  void AdviseOnUpdates(std::vector<Advice>& all) const {
    const auto [server, time] = Largest(busiest_);
    // With few parts a server can neither use its cores nor update while
    // gradients still come.
    const bool few = most_parts_ <= 2 && last_updates_ * 2 >= updating_;
    if (!few && sums_.limits.no_servers) return;
    all.push_back({.remedy = few ? Remedy::kMoreParts : Remedy::kMoreServers,
                   .share = Share(updating_),
                   .server = server});
  }

  const Explanation& sums_;
  const Pushes pushes_;
  int64_t total_ = 0;
  // By worker: in which the others wait for it.
  std::map<int, int64_t> late_unknown_;
  std::map<int, int64_t> late_absent_;
  std::map<int, int64_t> late_reading_;
  std::map<int, int64_t> late_computing_;
  std::map<int, int64_t> late_network_;
  // The same of all workers of a step.
  int64_t absent_ = 0;
  int64_t reading_ = 0;
  int64_t computing_ = 0;
  int64_t network_ = 0;
  int64_t updating_ = 0;
  std::map<int, int64_t> busiest_;  // updating, by server
  int most_parts_ = 0;              // of a server that was last
  int64_t last_updates_ = 0;
};

}  // namespace

std::vector<Advice> AdviceFor(const JobTrace& trace,
                              const std::vector<StepPath>& paths,
                              const Explanation& sums) {
  return Adviser(trace, paths, sums).All();
}

}  // namespace lockstep::cli
