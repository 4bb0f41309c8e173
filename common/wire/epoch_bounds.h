#ifndef LOCKSTEP_COMMON_WIRE_EPOCH_BOUNDS_H_
#define LOCKSTEP_COMMON_WIRE_EPOCH_BOUNDS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace lockstep {

// Epochs are drawn one after the other, so no epoch comes near kLargestEpoch,
// and none is further ahead than kLongestEpochLead. A server must refuse such
// an epoch: if it followed it, it might have to refuse all later chiefs.
inline constexpr uint64_t kLargestEpoch = uint64_t{1} << 42;
inline constexpr uint64_t kLongestEpochLead = uint64_t{1} << 32;

// The first attempt under a chief is its epoch times this, plus one: more than
// one step can have attempts under one chief.
inline constexpr int64_t kAttemptsOfAnEpoch = 1'000'000;

// The largest attempt that a chief may name: each has a successor.
inline constexpr int64_t kLargestAttempt = int64_t{1} << 62;

// Checks an attempt that a chief names.
//
//   kInvalidArgument  negative, or above kLargestAttempt
absl::Status CheckAttempt(int64_t attempt);

static_assert(static_cast<int64_t>(kLargestEpoch) + 1 <=
              kLargestAttempt / kAttemptsOfAnEpoch);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_EPOCH_BOUNDS_H_
