#ifndef LOCKSTEP_WORKER_SCORING_CHECKPOINT_CHOICE_H_
#define LOCKSTEP_WORKER_SCORING_CHECKPOINT_CHOICE_H_

#include <optional>

#include "common/checkpoint/checkpoint_reader.h"

namespace lockstep::worker {

// True if `newest`, the job's newest checkpoint, must be scored after `scored`,
// the one that was scored last; nullopt: none was. An older step is newest if
// the job has gone back to it, and the same step may have been written again
// after that.
bool MustScore(const Manifest& newest, const std::optional<Manifest>& scored);

// True if the job has gone back from `scored`, because `newest` is its newest
// checkpoint: the score of `scored` is that of lost steps.
bool IsLost(const Manifest& scored, const Manifest& newest);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SCORING_CHECKPOINT_CHOICE_H_
