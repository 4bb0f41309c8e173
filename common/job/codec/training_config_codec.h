#ifndef LOCKSTEP_COMMON_JOB_CODEC_TRAINING_CONFIG_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_TRAINING_CONFIG_CODEC_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "lockstep/v1/job.pb.h"

// The parts of a job that say how gradients become values, and where those
// are, as messages. FromProto() gives back what ToProto() was given, and
// absent fields take their defaults. None of these checks ranges.
namespace lockstep {

// A momentum and an epsilon that are the defaults of the kind are left out, so
// that another kind set later brings its own.
v1::OptimizerConfig ToProto(const OptimizerConfig& optimizer);
v1::LearningRateSchedule ToProto(const LearningRateConfig& rate);
v1::ClippingConfig ToProto(const ClippingConfig& clipping);
v1::PlacementConfig ToProto(const PlacementConfig& placement);
v1::PartitionerConfig ToProto(const PartitionerConfig& partitioner);

//   kInvalidArgument  an enumeration without meaning; names the field
absl::StatusOr<OptimizerConfig> FromProto(const v1::OptimizerConfig& proto);
absl::StatusOr<ClippingConfig> FromProto(const v1::ClippingConfig& proto);
absl::StatusOr<PlacementConfig> FromProto(const v1::PlacementConfig& proto);
absl::StatusOr<PartitionerConfig> FromProto(const v1::PartitionerConfig& proto);

// Everything but the base, which the message does not have.
absl::Status ReadSchedule(const v1::LearningRateSchedule& proto,
                          LearningRateConfig& rate);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_TRAINING_CONFIG_CODEC_H_
