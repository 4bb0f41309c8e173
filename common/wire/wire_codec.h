#ifndef LOCKSTEP_COMMON_WIRE_WIRE_CODEC_H_
#define LOCKSTEP_COMMON_WIRE_WIRE_CODEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/task_id.h"
#include "common/numeric/dtype.h"
#include "common/plan/example_shape.h"
#include "common/plan/figure.h"
#include "common/plan/leave_cause.h"
#include "common/plan/plan.h"
#include "common/plan/process_load.h"
#include "common/plan/progress.h"
#include "common/plan/run_settings.h"
#include "common/plan/variable_spec.h"
#include "common/wire/sender.h"
#include "google/protobuf/duration.pb.h"
#include "lockstep/v1/coordinator.pb.h"
#include "lockstep/v1/gradient.pb.h"
#include "lockstep/v1/identity.pb.h"

namespace lockstep {

// Conversions between Lockstep's types and the messages of lockstep.v1. Values
// from a peer are checked; values to a peer are not.

// The protocol version of this program. It must grow when a message changes its
// meaning, or workers change the order of sending; programs of different
// versions do not work together.
inline constexpr int kProtocolVersion = 3;

// Checks an incarnation from a peer.
//
//   kInvalidArgument  above kLargestIncarnation; names `field`
absl::Status CheckIncarnation(absl::string_view field, uint64_t incarnation);

//   kInvalidArgument  unknown task type, negative index, no incarnation, or one
//                     that is too large
absl::StatusOr<Sender> FromProto(const v1::Identity& identity);
v1::Identity ToProto(const Sender& sender);

//   kInvalidArgument  no name, an impossible shape, unknown dtype or
//                     initializer
absl::StatusOr<VariableSpec> FromProto(const v1::VariableDescription& proto);
v1::VariableDescription ToProto(const VariableSpec& variable);

//   kInvalidArgument  a number out of range
absl::StatusOr<ExampleShape> FromProto(const v1::ExampleDescription& proto);
v1::ExampleDescription ToProto(const ExampleShape& examples);

v1::Part ToProto(const Part& part);
Part FromProto(const v1::Part& part);

// Checks that every part lies within its variable and names one of
// `num_servers` servers, so that callers can use the plan without further
// checks.
//
//   kInvalidArgument  names the part and its error
absl::StatusOr<Plan> PlanFromProto(const v1::GetPlanResponse& response,
                                   int num_servers);

//   kInvalidArgument  a number without a name; names `field`
absl::StatusOr<GradientType> FromProto(absl::string_view field,
                                       v1::GradientType type);
v1::GradientType ToProto(GradientType type);

// Limit of google.protobuf.Duration: 10,000 years.
inline constexpr int64_t kMaxDurationSeconds = 315'576'000'000;

// Durations out of protobuf's range, in both directions, are clamped to it.
google::protobuf::Duration ToProto(absl::Duration duration);
absl::Duration FromProto(const google::protobuf::Duration& duration);

//   kInvalidArgument  a number below 0, a scale that is not above 0, workers
//                     that do not ascend or reach RunSettings::kMaxWorkers
absl::StatusOr<RunSettings> FromProto(const v1::RunSettings& proto);
v1::RunSettings ToProto(const RunSettings& settings);

google::protobuf::RepeatedPtrField<v1::Figure> ToProto(
    const std::vector<NamedFigure>& figures);
// Not checked: see CheckFigures().
std::vector<NamedFigure> FromProto(
    const google::protobuf::RepeatedPtrField<v1::Figure>& protos);

v1::WorkerProgress ToProto(const Progress& progress);
// Counts below 0 become 0, and those above Progress::kMostCounted become that:
// they are no reason to refuse a heartbeat, which would let the lease expire.
Progress FromProto(const v1::WorkerProgress& progress);

v1::ProcessLoad ToProto(const ProcessLoad& load);
// Negative and impossible figures become 0.
ProcessLoad FromProto(const v1::ProcessLoad& load);

// An unknown or absent cause becomes kStopped.
v1::LeaveCause ToProto(LeaveCause cause);
LeaveCause FromProto(v1::LeaveCause cause);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_WIRE_CODEC_H_
