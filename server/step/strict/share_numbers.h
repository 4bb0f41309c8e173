#ifndef LOCKSTEP_SERVER_STEP_STRICT_SHARE_NUMBERS_H_
#define LOCKSTEP_SERVER_STEP_STRICT_SHARE_NUMBERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "common/plan/step_vocabulary.h"

namespace lockstep::server {

// ShareNumbers hands out the numbers of a shared step to workers.
//
//   free --Take--> out (1 to kMaxCopies passes compute it) --Finish--> done
//    ^               |
//    `----Release----'   its last pass is gone
//
// A worker computes one number at a time. When none is free, Take() gives a
// number that is out to one more worker, a duplicate: the number with the
// fewest passes, and of those the one that was handed out first. Any of its
// passes may finish it.
//
// All calls but Restart() and Reset() take logarithmic time, since idle workers
// call after each number that is done.
//
// Threads: not thread-safe: SharedGate must call with its lock held.
class ShareNumbers {
 public:
  // The most passes that compute one number at the same time: the first, and
  // two more in case the second hangs as well.
  static constexpr size_t kMaxCopies = 3;

  // `count` > 0.
  explicit ShareNumbers(int count) : numbers_(static_cast<size_t>(count)) {}

  int count() const { return static_cast<int>(numbers_.size()); }

  // Gives the worker of `ended` a number for its next pass, and releases the
  // number that it computed before. Returns nullopt if all other numbers are
  // done or have kMaxCopies passes. A repeated call for the same pass returns
  // the same number.
  std::optional<int> Take(const Pass& ended);

  // Records that the gradient of pass.slot is ready, or about to be. Returns
  // false if the number is done. Accepts a pass that an earlier process of this
  // task has handed out like its own.
  bool Claim(const Pass& pass);

  // Records that the gradient of pass.slot is on all servers, so that the
  // number is done. No effect unless Claim() accepted the pass in this attempt.
  void Finish(const Pass& pass);

  // True if Claim() has accepted the pass, or the number is done.
  bool IsClaimed(const Pass& pass) const;
  bool IsDone(int number) const { return numbers_[number].done; }
  // True if another pass than this one finished pass.slot.
  bool IsDoneByOther(const Pass& pass) const;

  // Takes back the numbers that incarnations of the worker up to `incarnation`
  // compute. Returns true if there were any.
  bool Release(int worker, uint64_t incarnation);

  // Begins the step again: no number is done. Passes that have not been claimed
  // go on.
  void Restart();
  // Begins another step: all numbers are free.
  void Reset();

 private:
  // A pass that computes a number.
  struct Copy {
    Pass pass;
    bool claimed = false;
  };
  struct Number {
    bool done = false;
    Pass finisher = {};      // of a number that is done
    int64_t handed_out = 0;  // when it was free: counts Take()s
    std::vector<Copy> copies;
  };

  Copy* Find(const Pass& pass);
  const Copy* Find(const Pass& pass) const;
  // The number that Take() hands out, if any.
  std::optional<int> Choose();
  void Add(const Pass& pass, bool claimed);
  // Removes the copies of a number for which `ends` is true; returns how many.
  template <typename Ends>
  size_t Remove(int number, const Ends& ends);
  // Must be called before (Unlist) and after (List) a change of a number's
  // copies.
  void Unlist(int number);
  void List(int number);

  std::vector<Number> numbers_;
  int64_t taken_ = 0;
  int first_free_ = 0;  // no number below it is free
  // Numbers that one more pass may compute: passes, when it was handed out,
  // number.
  std::set<std::tuple<size_t, int64_t, int>> out_;
  std::map<int, std::set<int>> held_;  // by worker: the numbers of its copies
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_SHARE_NUMBERS_H_
