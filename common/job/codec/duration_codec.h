#ifndef LOCKSTEP_COMMON_JOB_CODEC_DURATION_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_DURATION_CODEC_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"

namespace lockstep {

// `field` names the duration in error messages.
//
//   kInvalidArgument  seconds or nanos outside the range of the type, or of
//                     different sign
absl::StatusOr<absl::Duration> DurationFromProto(
    absl::string_view field, const google::protobuf::Duration& proto);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_DURATION_CODEC_H_
