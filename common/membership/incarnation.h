#ifndef LOCKSTEP_COMMON_MEMBERSHIP_INCARNATION_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_INCARNATION_H_

#include <cstdint>

namespace lockstep {

// Incarnations from this on are refused, so that sums and differences of two
// incarnations never overflow.
inline constexpr uint64_t kMaxIncarnation = uint64_t{1} << 62;

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_INCARNATION_H_
