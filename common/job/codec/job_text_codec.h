#ifndef LOCKSTEP_COMMON_JOB_CODEC_JOB_TEXT_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_JOB_TEXT_CODEC_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace lockstep {

inline constexpr size_t kMaxJobTextBytes = size_t{1} << 20;

// Parses protobuf text format from outside into `message`, which is cleared
// first and unspecified after an error. Skips a byte order mark; a duration may
// be text such as "60s".
//
//   kInvalidArgument  longer than kMaxJobTextBytes, or the first fault as
//                     "source:line:column: ...", with the nearest name for an
//                     unknown field or enumeration value
absl::Status ParseTextMessage(absl::string_view text, absl::string_view source,
                              google::protobuf::Message& message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_JOB_TEXT_CODEC_H_
