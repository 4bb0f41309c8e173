#ifndef LOCKSTEP_COMMON_JOB_CODEC_JOB_TEXT_SCAN_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_JOB_TEXT_SCAN_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace lockstep {

// The result of scanning a job file's tokens before it is parsed.
struct JobTextScan {
  // With "60s" of a duration as { seconds: 60 nanos: 0 }, and AUTO as its
  // number.
  std::string text;
  int open_line = 0;  // of the last '{' that is not closed; 0: all are
};

// Rewrites two kinds of values that TextFormat cannot parse: durations as text,
// and AUTO. `root` is the message type of the text: durations are the fields of
// that type in its file. Syntax errors are left to the parser.
//
//   kInvalidArgument  "source:line:column: ..." for text that is no duration
absl::StatusOr<JobTextScan> ScanJobText(
    absl::string_view text, absl::string_view source,
    const google::protobuf::Descriptor& root);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_JOB_TEXT_SCAN_CODEC_H_
