#ifndef LOCKSTEP_COMMON_JOB_CODEC_JOB_CONFIG_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_JOB_CONFIG_CODEC_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "lockstep/v1/job.pb.h"

// Conversions of JobConfig from and to messages and text, and `--set`. They do
// not check ranges: callers must call ValidateJobConfig() on the results.

namespace lockstep {

// Every valid JobConfig survives ToProto() and FromProto() unchanged.
v1::JobConfig ToProto(const JobConfig& job);

// Absent fields take their defaults.
//
//   kInvalidArgument  an unknown enumeration value or an invalid duration;
//                     names the field
absl::StatusOr<JobConfig> FromProto(const v1::JobConfig& proto);

// Reads a job file: protobuf text format, at most 1 MiB. `source` is the name
// of the file in messages. Then sets one field for each of `overrides`, in
// their order, as SetField(). A field that the text or an override gives keeps
// its value whatever kind a later override chooses; other fields have the
// defaults of the last kind.
//
//   kInvalidArgument  "source:line:column: ..." for an unknown field, with the
//                     nearest known one, a wrong type and broken syntax; too
//                     long or nested too deep; as SetField()
absl::StatusOr<JobConfig> ParseJobText(
    absl::string_view text, absl::string_view source,
    absl::Span<const std::string> overrides = {});

// Returns the model.kind that the text of a job file sets; empty: none.
//
//   kInvalidArgument  a syntax error or unknown field, as in ParseJobText()
absl::StatusOr<std::string> ModelKindIn(absl::string_view text,
                                        absl::string_view source);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_JOB_CONFIG_CODEC_H_
