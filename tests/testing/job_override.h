#ifndef LOCKSTEP_TESTS_TESTING_JOB_OVERRIDE_H_
#define LOCKSTEP_TESTS_TESTING_JOB_OVERRIDE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/job/codec/job_config_codec.h"
#include "common/job/codec/job_override_codec.h"
#include "common/job/job_config.h"

namespace lockstep::testing {

// Sets one field of a job as SetField() sets that of its message. A job does
// not tell a given value from the default of its kind, so that a new kind
// replaces both by its own default.
inline absl::Status ApplyOverride(absl::string_view assignment,
                                  JobConfig& job) {
  v1::JobConfig proto = ToProto(job);
  if (absl::Status set = SetField(assignment, proto); !set.ok()) return set;
  absl::StatusOr<JobConfig> changed = FromProto(proto);
  if (changed.ok()) job = *changed;
  return changed.status();
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_JOB_OVERRIDE_H_
