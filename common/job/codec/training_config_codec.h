#ifndef LOCKSTEP_COMMON_JOB_CODEC_TRAINING_CONFIG_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_TRAINING_CONFIG_CODEC_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "lockstep/v1/job.pb.h"

// Conversion of the parts of a job that define updates and placement.
// FromProto() restores the argument of ToProto(), and absent fields take their
// defaults. Ranges are not checked.
namespace lockstep {

// Leaves out a momentum and an epsilon that are the defaults of the kind, so
// that a kind set later uses its own defaults.
v1::OptimizerConfig ToProto(const OptimizerConfig& optimizer);
v1::LearningRateSchedule ToProto(const LearningRateConfig& rate);
v1::ClippingConfig ToProto(const ClippingConfig& clipping);
v1::PlacementConfig ToProto(const PlacementConfig& placement);
v1::PartitionerConfig ToProto(const PartitionerConfig& partitioner);

//   kInvalidArgument  an unknown enumeration value; names the field
absl::StatusOr<OptimizerConfig> FromProto(const v1::OptimizerConfig& proto);
absl::StatusOr<ClippingConfig> FromProto(const v1::ClippingConfig& proto);
absl::StatusOr<PlacementConfig> FromProto(const v1::PlacementConfig& proto);
absl::StatusOr<PartitionerConfig> FromProto(const v1::PartitionerConfig& proto);

// Reads all fields except the base, which the message does not have.
absl::Status ReadSchedule(const v1::LearningRateSchedule& proto,
                          LearningRateConfig& rate);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_TRAINING_CONFIG_CODEC_H_
