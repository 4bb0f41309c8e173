#include "worker/scoring/checkpoint_choice.h"

namespace lockstep::worker {
namespace {

bool AreSame(const Manifest& one, const Manifest& other) {
  return one.global_step == other.global_step &&
         one.saved_at_unix_ms == other.saved_at_unix_ms;
}

}  // namespace

bool MustScore(const Manifest& newest, const std::optional<Manifest>& scored) {
  return !scored.has_value() || !AreSame(newest, *scored);
}

bool IsLost(const Manifest& scored, const Manifest& newest) {
  return newest.global_step <= scored.global_step && !AreSame(newest, scored);
}

}  // namespace lockstep::worker
