#include "tests/benchmark/pass_times.h"

#include <cmath>

namespace lockstep::benchmark {

PassTimes::PassTimes(const RoleOptions& options, int worker)
    : mean_(absl::Milliseconds(options.compute_ms) *
            (options.slow_worker >= 0 && worker >= options.slow_worker
                 ? options.slow_factor
                 : 1)),
      sigma_(options.sigma),
      hang_(worker == options.hang_worker ? absl::Milliseconds(options.hang_ms)
                                          : absl::ZeroDuration()),
      hang_every_(absl::Milliseconds(options.hang_every_ms)),
      random_(static_cast<uint64_t>(worker)) {}

absl::Duration PassTimes::Hang(absl::Time now) {
  if (hang_ == absl::ZeroDuration()) return hang_;
  if (next_hang_ == absl::InfinitePast()) next_hang_ = now + hang_every_;
  if (now < next_hang_) return absl::ZeroDuration();
  next_hang_ = now + hang_ + hang_every_;
  return hang_;
}

absl::Duration PassTimes::Next() {
  if (sigma_ == 0) return mean_;
  return mean_ * std::exp(sigma_ * normal_(random_) - sigma_ * sigma_ / 2);
}

}  // namespace lockstep::benchmark
