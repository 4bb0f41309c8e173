#ifndef LOCKSTEP_COMMON_MEMBERSHIP_INCARNATION_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_INCARNATION_H_

#include <cstdint>

namespace lockstep {

// The largest incarnation that is taken at all. It leaves room for the sums of
// those who compare incarnations.
inline constexpr uint64_t kMaxIncarnation = uint64_t{1} << 62;

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_INCARNATION_H_
