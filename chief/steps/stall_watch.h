#ifndef LOCKSTEP_CHIEF_STEPS_STALL_WATCH_H_
#define LOCKSTEP_CHIEF_STEPS_STALL_WATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::chief {

// StallWatch finds the worker that holds up a step of strict mode: a member of
// the step's set whose gradients are missing, and which has delivered none for
// a while or whose connection has broken.
//
// Servers report the gradients that have arrived. Each member has few chunks in
// flight, so members wait for one another and several may stand still; the one
// with the least progress is the cause.
//
// Threads: belongs to the chief's loop.
// Units:   arrivals count parts.
class StallWatch {
 public:
  // The gradients of the current attempt on a server that is not prepared.
  struct Arrivals {
    int open_parts = 0;          // parts that lack gradients
    std::map<int, int> pushed;   // by worker: open parts with its gradient
    std::vector<int> lost = {};  // workers whose connection has broken
  };

  // `set_size` is the number of gradients that a step takes.
  StallWatch(int num_servers, int set_size)
      : set_size_(set_size), servers_(num_servers) {}

  // Sets the number of gradients of a step.
  void SetSize(int set_size) { set_size_ = set_size; }

  // Begins a step: forgets all reports.
  void Begin();

  // Records the current attempt and the members of its set so far, ascending,
  // as ps task 0 has reported them.
  void OnSet(int64_t attempt, std::vector<int> members, absl::Time now);

  // Records a server's report of the gradients that have arrived for `attempt`.
  // Reports of another attempt than that of OnSet() have no effect.
  void OnArrivals(int server, int64_t attempt, Arrivals arrivals,
                  absl::Time now);

  // Records that a server has all gradients.
  void OnPrepared(int server) { servers_[server].reset(); }

  int64_t attempt() const { return attempt_; }  // 0: not known

  // True if a server has reported that it lacks gradients of `worker`.
  bool IsMissed(int worker) const;

  struct Found {
    int worker = 0;
    bool lost = false;  // its connection has broken

    bool operator==(const Found&) const = default;
  };
  // Returns the member that holds up the step: one whose connection has broken,
  // or else the one that has held it up for `patience` or longer. Returns
  // nullopt if there is none, and before the set is full.
  std::optional<Found> Find(absl::Time now, absl::Duration patience) const;

 private:
  struct Member {
    int64_t progress = 0;  // grows with each arrival, in parts
    absl::Time since;      // of this progress
  };

  int64_t ProgressOf(int worker) const;
  bool IsLost(int worker) const;

  int set_size_;
  int64_t attempt_ = 0;
  std::map<int, Member> members_;                 // empty until the set is full
  std::vector<std::optional<Arrivals>> servers_;  // nullopt: prepared
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STEPS_STALL_WATCH_H_
