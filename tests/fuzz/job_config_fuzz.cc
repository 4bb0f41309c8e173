#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "common/job/codec/job_config_codec.h"
#include "common/job/job_config.h"

namespace lockstep {
namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

// A valid job must survive the wire bit by bit.
void CheckRoundTrip(const JobConfig& job) {
  const v1::JobConfig proto = ToProto(job);
  v1::JobConfig received;
  Require(received.ParseFromString(proto.SerializeAsString()));
  const absl::StatusOr<JobConfig> again = FromProto(received);
  Require(again.ok());
  Require(ValidateJobConfig(*again).ok());
  Require(ToProto(*again).SerializeAsString() == proto.SerializeAsString());
}

// Uses the same bytes as the argument of --set.
void CheckOverride(absl::string_view text) {
  const absl::StatusOr<JobConfig> job =
      ParseJobText("", "fuzz", {std::string(text)});
  if (job.ok() && ValidateJobConfig(*job).ok()) CheckRoundTrip(*job);
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  lockstep::CheckOverride(text);
  const absl::StatusOr<lockstep::JobConfig> job =
      lockstep::ParseJobText(text, "fuzz");
  if (job.ok() && lockstep::ValidateJobConfig(*job).ok()) {
    lockstep::CheckRoundTrip(*job);
  }
  return 0;
}
