#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORLD_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORLD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace lockstep::simulation {

// World is the time, the network and the chance of a simulation. Everything
// happens in events, one after the other, in an order that follows from the
// seed alone.
//
// A place is a task of the cluster: a process comes up at it, may hang, and
// goes, and another one comes. Calls go from a process to the one at a
// place; while there is chaos they are lost on either way, repeated and
// delayed.
class World final : public Clock {
 public:
  using Event = std::function<void()>;

  explicit World(uint64_t seed) : random_(seed) {}

  absl::Time Now() const override { return now_; }
  int64_t events() const { return num_events_; }
  // The process whose event runs.
  int serving() const { return serving_; }

  int64_t Random(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }
  bool Chance(int64_t per_mille) { return Random(1000) < per_mille; }
  absl::Duration RandomDuration(absl::Duration below) {
    return absl::Nanoseconds(
        Random(std::max<int64_t>(absl::ToInt64Nanoseconds(below), 1)));
  }

  // Runs the next event; false if there is none.
  bool RunOne();
  void After(absl::Duration delay, Event event);

  // Processes, by a number that is never used again.
  int Start(int place, Event before_event, Event after_event);
  void End(int process);
  void Hang(int process, absl::Duration time);
  bool IsAlive(int process) const { return processes_[process].alive; }
  bool IsHung(int process) const {
    return processes_[process].hung_until > now_;
  }
  void WakeUp(int process);
  // Calls to its place reach this process again, which was replaced.
  void TakePlace(int process) { at_[processes_[process].place] = process; }
  void WakeAll();
  // Runs an event of a process: not if it has ended, later while it hangs.
  template <typename Function>
  void RunFor(int process, Function&& event);
  void AfterFor(int process, absl::Duration delay, Event event);

  // Nothing passes from one place to another for a while.
  void Cut(int from, int to, absl::Duration time);
  void HealAll() { cuts_.clear(); }
  bool chaos = false;  // the network is as bad as it gets

  template <typename Answer>
  using Reply = std::function<void(absl::StatusOr<Answer>)>;

  // Makes a call. `serve` runs for the process at place `to`, perhaps twice;
  // `done` runs once for the process `from` if that lives then, with
  //
  //   kUnavailable       no process is there, or the request or answer was lost
  //   kDeadlineExceeded  no answer came for long
  template <typename Answer>
  void Call(int from, int to, std::function<void(Reply<Answer>)> serve,
            Reply<Answer> done);

  // What happened last, where that is recorded.
  void Trace(const std::string& line);
  bool tracing = false;
  const std::deque<std::string>& trace() const { return trace_; }

 private:
  struct Scheduled {
    absl::Time time;
    uint64_t order = 0;
    uint32_t slot = 0;  // of events_
    bool operator<(const Scheduled& other) const {
      return std::pair(time, order) > std::pair(other.time, other.order);
    }
  };
  struct Process {
    int place = 0;
    bool alive = true;
    absl::Time hung_until = absl::InfinitePast();
    Event before_event;
    Event after_event;
    std::vector<Event> deferred;       // while it hangs
    std::map<uint64_t, Event> served;  // calls that wait for it
  };

  // A call on its way, which its events share: what it does is copied once.
  template <typename Answer>
  struct CallState {
    int from = 0;        // a process
    int from_place = 0;  // of it
    int to = 0;          // a place
    uint64_t id = 0;
    int server = -1;  // the process that serves it, once there is one
    bool answered = false;
    std::function<void(Reply<Answer>)> serve;
    Reply<Answer> done;
  };
  // The request arrives. Not `heard`: it is a repeated one.
  template <typename Answer>
  void Deliver(const std::shared_ptr<CallState<Answer>>& call, bool heard);
  // The process has answered.
  template <typename Answer>
  void Answered(const std::shared_ptr<CallState<Answer>>& call,
                absl::StatusOr<Answer> answer);
  // The connection breaks after `delay`.
  template <typename Answer>
  void Break(const std::shared_ptr<CallState<Answer>>& call,
             absl::Duration delay);
  // The caller receives `answer`, if it has none yet.
  template <typename Answer>
  void Finish(const std::shared_ptr<CallState<Answer>>& call,
              absl::StatusOr<Answer> answer);

  void Wake(int process);
  absl::Duration Latency();
  bool IsCut(int from, int to) const;
  // The process at a place, or -1.
  int At(int place) const;

  std::mt19937_64 random_;
  absl::Time now_ = absl::UnixEpoch();
  int64_t num_events_ = 0;
  int serving_ = -1;
  uint64_t next_order_ = 0;
  std::priority_queue<Scheduled> queue_;
  std::vector<Event> events_;
  std::vector<uint32_t> free_slots_;
  std::deque<Process> processes_;
  std::map<int, int> at_;  // by place
  std::map<std::pair<int, int>, absl::Time> cuts_;
  uint64_t next_call_ = 0;
  std::deque<std::string> trace_;
};

template <typename Answer>
void World::Call(int from, int to, std::function<void(Reply<Answer>)> serve,
                 Reply<Answer> done) {
  auto call = std::make_shared<CallState<Answer>>();
  call->from = from;
  call->from_place = processes_[from].place;
  call->to = to;
  call->id = ++next_call_;
  call->serve = std::move(serve);
  call->done = std::move(done);
  After(absl::Seconds(10), [this, call] {
    Finish<Answer>(call, absl::DeadlineExceededError("no answer for 10 s"));
  });
  if (IsCut(call->from_place, to) || (chaos && Chance(15))) {
    Break(call, absl::Milliseconds(20) + Latency());
    return;
  }
  After(Latency(), [this, call] { Deliver(call, true); });
  if (chaos && Chance(20)) {
    After(Latency() + RandomDuration(absl::Milliseconds(20)),
          [this, call] { Deliver(call, false); });
  }
}

template <typename Answer>
void World::Finish(const std::shared_ptr<CallState<Answer>>& call,
                   absl::StatusOr<Answer> answer) {
  if (call->answered) return;
  call->answered = true;
  if (call->server >= 0) processes_[call->server].served.erase(call->id);
  RunFor(call->from,
         [call, answer = std::move(answer)] { call->done(answer); });
}

template <typename Answer>
void World::Break(const std::shared_ptr<CallState<Answer>>& call,
                  absl::Duration delay) {
  After(delay, [this, call] {
    Finish<Answer>(call, absl::UnavailableError("the connection broke"));
  });
}

template <typename Answer>
void World::Answered(const std::shared_ptr<CallState<Answer>>& call,
                     absl::StatusOr<Answer> answer) {
  if (IsCut(call->to, call->from_place) || (chaos && Chance(15))) {
    Break(call, Latency() + absl::Milliseconds(20));
    return;
  }
  After(Latency(), [this, call, answer = std::move(answer)] {
    Finish<Answer>(call, answer);
  });
}

template <typename Answer>
void World::Deliver(const std::shared_ptr<CallState<Answer>>& call,
                    bool heard) {
  const int server = At(call->to);
  if (server < 0) {
    if (heard) Break(call, absl::Milliseconds(1));
    return;
  }
  if (heard && !call->answered) {
    call->server = server;
    processes_[server].served[call->id] = [this, call] {
      Break(call, absl::Milliseconds(1));
    };
  }
  RunFor(server, [this, call, heard] {
    call->serve([this, call, heard](absl::StatusOr<Answer> answer) {
      if (heard) Answered<Answer>(call, std::move(answer));
    });
  });
}

template <typename Function>
void World::RunFor(int number, Function&& event) {
  Process& process = processes_[number];
  if (!process.alive) return;
  if (process.hung_until > now_) {
    process.deferred.emplace_back(std::forward<Function>(event));
    return;
  }
  serving_ = number;
  if (process.before_event) process.before_event();
  event();
  // The event may have ended the process.
  if (process.alive && process.after_event) process.after_event();
}

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORLD_H_
