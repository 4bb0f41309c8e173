#ifndef LOCKSTEP_COMMON_JOB_CODEC_TRAINING_CONFIG_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_TRAINING_CONFIG_CODEC_H_

#include "common/job/codec/field_list_codec.h"
#include "common/job/job_config.h"
#include "lockstep/v1/job.pb.h"

// Conversion of the parts of a job that define updates and placement.
// FromProto() restores the argument of ToProto(), and absent fields take their
// defaults. Ranges are not checked.
namespace lockstep {

// A momentum, an epsilon and a weight decay that are the defaults of the kind
// are absent fields, so that a kind set later uses its own defaults.
void VisitFields(FieldVisitor& visit, OptimizerConfig& optimizer);
// All fields except the base, which the message does not have.
void VisitFields(FieldVisitor& visit, LearningRateConfig& rate);
void VisitFields(FieldVisitor& visit, ClippingConfig& clipping);
void VisitFields(FieldVisitor& visit, PlacementConfig& placement);
void VisitFields(FieldVisitor& visit, PartitionerConfig& partitioner);

inline v1::OptimizerConfig ToProto(const OptimizerConfig& optimizer) {
  return ToMessage<v1::OptimizerConfig>(optimizer);
}
inline v1::ClippingConfig ToProto(const ClippingConfig& clipping) {
  return ToMessage<v1::ClippingConfig>(clipping);
}
inline v1::PlacementConfig ToProto(const PlacementConfig& placement) {
  return ToMessage<v1::PlacementConfig>(placement);
}
inline v1::PartitionerConfig ToProto(const PartitionerConfig& partitioner) {
  return ToMessage<v1::PartitionerConfig>(partitioner);
}

//   kInvalidArgument  an unknown enumeration value; names the field
inline auto FromProto(const v1::OptimizerConfig& proto) {
  return FromMessage<OptimizerConfig>(proto, "optimizer.");
}
inline auto FromProto(const v1::ClippingConfig& proto) {
  return FromMessage<ClippingConfig>(proto, "clipping.");
}
inline auto FromProto(const v1::PlacementConfig& proto) {
  return FromMessage<PlacementConfig>(proto, "placement.");
}
inline auto FromProto(const v1::PartitionerConfig& proto) {
  return FromMessage<PartitionerConfig>(proto, "partitioner.");
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_TRAINING_CONFIG_CODEC_H_
