#ifndef LOCKSTEP_COMMON_JOB_CODEC_AUTO_NUMBER_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_AUTO_NUMBER_CODEC_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep {

// The mark of a number that the chief chooses: its word in job files and
// overrides, and its value in messages, which ValidateJobConfig() allows no
// user to give.
inline constexpr absl::string_view kAutoText = "AUTO";
inline constexpr int32_t kAutoNumber = -1;

// True if a field of this name may be kAutoText.
inline bool MayBeAuto(absl::string_view field) {
  return field == "replicas_to_aggregate";
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_AUTO_NUMBER_CODEC_H_
