#ifndef LOCKSTEP_TESTS_CONFORMANCE_PROTOCOL_VIEW_SIMULATION_H_
#define LOCKSTEP_TESTS_CONFORMANCE_PROTOCOL_VIEW_SIMULATION_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/event_queue.h"
#include "server/shard/shard.h"
#include "tests/testing/temp_dir.h"
#include "worker/client/mapped_values.h"

namespace lockstep {

// ViewSimulation runs a real Shard, its state in a file and its gate included,
// with simulated workers in one thread, in random order. Workers pull, push,
// repeat pushes, die and are replaced; readers keep the bytes that they were
// lent, at times for long, or give them back at once.
//
// A model of the values, which counts by quarters and so exactly, tells what
// each of them must see. All that differs is noted in broken().
class ViewSimulation {
 public:
  struct Options {
    int replicas_to_aggregate = 2;
    int total_num_replicas = 2;
    int64_t steps = 8;       // then training ends
    int chaos_events = 400;  // after so many no worker dies or is slow
  };

  ViewSimulation(const Options& options, uint32_t seed);

  // Until the last step is committed.
  void Run();

  const std::vector<std::string>& broken() const { return broken_; }

  // Counts, so that a test can tell that its schedules reached these cases.
  int64_t blocked_updates() const { return blocked_updates_; }
  int64_t redone_attempts() const { return redone_attempts_; }
  int64_t overtaken_copies() const { return overtaken_copies_; }

 private:
  using Values = std::vector<float>;
  // Bytes that a reader was lent, and the values that they must have as long as
  // it keeps them.
  struct View {
    server::LentBytes lent;
    Values expected;
  };
  // A worker's values of a part.
  struct Held {
    int64_t step = -1;
    int64_t attempt = 0;  // of the push that brought it; 0: of a committed step
    Values values;
  };
  // A part that a reader copies by itself, perhaps too late.
  struct LateCopy {
    SharedPlace place;
    Values expected;
  };
  enum class Phase { kWait, kWaiting, kPull, kAnnounce, kPush, kAnswers };
  struct Worker {
    uint64_t incarnation = 1;
    Phase phase = Phase::kWait;
    uint64_t ticket = 0;  // of its wait
    Pass pass{0, 1, -1, 0, 0};
    int64_t attempt = 0;
    std::vector<int> to_push;
    int unanswered = 0;
    std::vector<Held> memory;
  };
  struct PushCall {
    int worker = 0;
    Pass pass;
    int64_t attempt = 0;
    int first_part = 0;
  };

  void Break(const std::string& what) { broken_.push_back(what); }
  int64_t Random(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }
  bool Chance(int percent) { return Random(100) < percent; }
  bool chaos() const { return events_ < options_.chaos_events; }
  int num_parts() const { return shard_->state().num_parts(); }

  void Open();
  void RunOne();
  void Disturb();
  void Act(int worker);
  void Wait(int worker);
  void Pull(int worker);
  void Announce(int worker);
  void BeginPush(int worker);
  void Push(int worker);
  void Read();
  void Kill(int worker);
  void Replace(int worker);
  void Commit();

  void HandleGate(const std::vector<server::Gate::Answer>& answers);
  void TakeToken(int worker, const server::Gate::Answer& answer);
  void HandleShard(server::ShardAnswers answers);
  void HandlePush(server::PushAnswer answer);

  // One element of a gradient, and the values after a step with the gradients
  // of `workers`.
  float Gradient(int worker, int64_t step, int part, size_t element) const;
  Values Updated(int64_t step, int part, const std::set<int>& workers) const;
  // Checks the lent bytes now, and keeps them for a while or not.
  void See(server::LentBytes lent, const Values& expected,
           const std::string& who);
  void CheckViews();
  // Copies from shared memory; false if the place has been written to since.
  bool Copy(const SharedPlace& place, const Values& expected);

  const Options options_;
  std::mt19937 random_;
  const testing::TempDir directory_;
  const std::shared_ptr<EventQueue<int>> returned_ =
      std::make_shared<EventQueue<int>>();
  std::deque<int> returned_parts_;  // taken out of it
  std::unique_ptr<server::Shard> shard_;
  std::unique_ptr<worker::MappedValues> shared_;
  std::vector<Worker> workers_;
  std::vector<View> views_;
  std::deque<LateCopy> late_copies_;

  int64_t events_ = 0;
  uint64_t tickets_ = 0;
  std::map<uint64_t, PushCall> pushes_;
  std::deque<server::ShardAnswers::Prepared> prepared_;
  std::map<int64_t, std::vector<Values>> model_;  // by step, by part
  // By step, attempt and part: whose gradients are in.
  std::map<std::tuple<int64_t, int64_t, int>, std::set<int>> pushed_;

  int64_t blocked_updates_ = 0;
  int64_t redone_attempts_ = 0;
  int64_t overtaken_copies_ = 0;
  std::vector<std::string> broken_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONFORMANCE_PROTOCOL_VIEW_SIMULATION_H_
