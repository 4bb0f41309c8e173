#ifndef LOCKSTEP_COMMON_JOB_CODEC_JOB_OVERRIDE_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_JOB_OVERRIDE_CODEC_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace lockstep {

// Sets one field of `message` from "key=value", as ApplyOverride().
//
//   kInvalidArgument  as ApplyOverride(); `message` is then unspecified
absl::Status SetField(absl::string_view assignment,
                      google::protobuf::Message& message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_JOB_OVERRIDE_CODEC_H_
