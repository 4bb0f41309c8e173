#ifndef LOCKSTEP_COMMON_NUMERIC_HALF_H_
#define LOCKSTEP_COMMON_NUMERIC_HALF_H_

#include <cstdint>

namespace lockstep {

// The value of an IEEE 754 binary16 given by its bits. Exact; every NaN stays
// a NaN.
float HalfToFloat(uint16_t bits);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_HALF_H_
