#ifndef LOCKSTEP_COMMON_JOB_BEGINNING_H_
#define LOCKSTEP_COMMON_JOB_BEGINNING_H_

#include <cstdint>

namespace lockstep {

// The step at which a job begins. A person requests any step but the newest for
// one start only: a restarted chief continues from the newest state.
struct Beginning {
  // The newest step of servers and checkpoints.
  static constexpr int64_t kNewest = -2;
  static constexpr int64_t kFresh = -1;  // initial values

  // kNewest, kFresh, or the step of a checkpoint. With the last two, servers
  // discard their state, and newer checkpoints are set aside.
  int64_t step = kNewest;

  bool anew() const { return step != kNewest; }
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_BEGINNING_H_
