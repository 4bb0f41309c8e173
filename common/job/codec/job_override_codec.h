#ifndef LOCKSTEP_COMMON_JOB_CODEC_JOB_OVERRIDE_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_JOB_OVERRIDE_CODEC_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace lockstep {

// Sets one field of `message` from "key=value". The key is a field as the job
// file spells it, dotted if nested: "checkpoint.every_steps=100". Values:
// numbers; true and false; names of an enumeration, in any case; "60s" or
// "1500ms" for durations; "a,b,c" or "[a, b, c]" for lists, which replace the
// whole list.
//
//   kInvalidArgument  no '='; an unknown key, with the nearest known one; a
//                     value of the wrong type, with the type. `message` is then
//                     unspecified
absl::Status SetField(absl::string_view assignment,
                      google::protobuf::Message& message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_JOB_OVERRIDE_CODEC_H_
