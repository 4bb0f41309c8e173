#ifndef LOCKSTEP_COMMON_JOB_BEGINNING_H_
#define LOCKSTEP_COMMON_JOB_BEGINNING_H_

#include <cstdint>

namespace lockstep {

// Where a job begins. Anything but the newest step is wanted once, by a person:
// a chief that is started again goes on from what there is then.
struct Beginning {
  static constexpr int64_t kNewest = -2;  // what servers and checkpoints have
  static constexpr int64_t kFresh = -1;   // initial values

  // kNewest, kFresh, or the step of a checkpoint. With the last two, servers
  // discard what they have, and newer checkpoints are set aside.
  int64_t step = kNewest;

  bool anew() const { return step != kNewest; }
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_BEGINNING_H_
