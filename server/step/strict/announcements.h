#ifndef LOCKSTEP_SERVER_STEP_STRICT_ANNOUNCEMENTS_H_
#define LOCKSTEP_SERVER_STEP_STRICT_ANNOUNCEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "common/plan/step_vocabulary.h"
#include "server/step/strict/worker_roll.h"

namespace lockstep::server {

// Announcements keeps the passes that workers have announced for a step, each
// once, in order of arrival. A step of thousands of workers looks each of them
// up as often, so they are also indexed by worker.
//
// Two passes are the same if the same process of a worker computes the same
// share of the same step.
//
// Threads: not thread-safe: the gate must call with its lock held.
class Announcements {
 public:
  // Adds the pass after the others, unless it is there.
  void Add(const Pass& pass);
  // Removes the passes of incarnations of `worker` up to `incarnation`.
  void Remove(int worker, uint64_t incarnation);
  // Removes the passes of workers that do not take part.
  void RemoveLeavers(const WorkerRoll& roll);
  // Moves the pass at `later` to `earlier`, and the pass at `earlier` to the
  // end. Both must be below size().
  void Replace(size_t earlier, size_t later);
  void clear();

  size_t size() const { return passes_.size(); }
  const Pass& operator[](size_t place) const { return passes_[place]; }
  bool Has(const Pass& pass) const { return keys_.count(KeyOf(pass)) > 0; }
  // True if the pass is among the first `count`.
  bool HasAmong(size_t count, const Pass& pass) const;
  // True if an incarnation of the worker before this one announced a pass.
  bool HasBefore(int worker, uint64_t incarnation) const;
  // Returns the first place of the worker below `count`; `count` if there is
  // none.
  size_t PlaceOf(int worker, size_t count) const;

  static bool Same(const Pass& a, const Pass& b) {
    return KeyOf(a) == KeyOf(b);
  }

 private:
  // Worker, incarnation, step, share.
  using Key = std::tuple<int, uint64_t, int64_t, int>;

  static Key KeyOf(const Pass& pass) {
    return {pass.worker, pass.incarnation, pass.local_step, pass.slot};
  }

  template <typename Goes>
  void RemoveIf(const Goes& goes);

  std::vector<Pass> passes_;
  std::set<Key> keys_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_ANNOUNCEMENTS_H_
