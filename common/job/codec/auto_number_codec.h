#ifndef LOCKSTEP_COMMON_JOB_CODEC_AUTO_NUMBER_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_AUTO_NUMBER_CODEC_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep {

// A number of a job that the chief chooses: the word for it in job files and in
// overrides, and its value on the wire, which no number of a user's has.
inline constexpr absl::string_view kAutoText = "AUTO";
inline constexpr int32_t kAutoNumber = -1;

// Whether the field of that name may be kAutoText.
inline bool MayBeAuto(absl::string_view field) {
  return field == "replicas_to_aggregate";
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_AUTO_NUMBER_CODEC_H_
