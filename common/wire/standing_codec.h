#ifndef LOCKSTEP_COMMON_WIRE_STANDING_CODEC_H_
#define LOCKSTEP_COMMON_WIRE_STANDING_CODEC_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/plan/step_vocabulary.h"
#include "common/wire/wire_codec.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "lockstep/v1/shard_control.pb.h"

namespace lockstep {

using StandingMessages = google::protobuf::RepeatedPtrField<v1::WorkerStanding>;

inline void FillStandings(const std::vector<WorkerStanding>& standings,
                          StandingMessages& messages) {
  for (const WorkerStanding& standing : standings) {
    v1::WorkerStanding& message = *messages.Add();
    message.set_worker(standing.worker);
    if (standing.shut_out_above.has_value()) {
      message.set_shut_out_above(*standing.shut_out_above);
    }
    message.set_input_ended(standing.input_ended);
  }
}

//   kInvalidArgument  an incarnation that cannot be
inline absl::StatusOr<std::vector<WorkerStanding>> FromProto(
    const StandingMessages& messages) {
  std::vector<WorkerStanding> standings;
  for (const v1::WorkerStanding& message : messages) {
    WorkerStanding standing{.worker = message.worker(),
                            .input_ended = message.input_ended()};
    if (message.has_shut_out_above()) {
      LOCKSTEP_RETURN_IF_ERROR(
          CheckIncarnation("workers.shut_out_above", message.shut_out_above()));
      standing.shut_out_above = message.shut_out_above();
    }
    standings.push_back(standing);
  }
  return standings;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_STANDING_CODEC_H_
