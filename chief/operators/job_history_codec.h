#ifndef LOCKSTEP_CHIEF_OPERATORS_JOB_HISTORY_CODEC_H_
#define LOCKSTEP_CHIEF_OPERATORS_JOB_HISTORY_CODEC_H_

#include "absl/time/time.h"
#include "chief/operators/status_table.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep::chief {

// Encodes a death. Its time is sent as an age at `now`: clocks may differ.
v1::DeathStatus DeathToProto(const StatusTable::Death& death, absl::Time now);
v1::LossStatus LossesToProto(const StatusTable::Losses& losses);
v1::JobHistory HistoryToProto(const StatusTable::History& history,
                              absl::Time now);

// Decodes a history. Drops impossible values: negative numbers, counts beyond
// those of a heartbeat, deaths beyond the number that is kept, and text after
// its first kilobyte.
StatusTable::History HistoryFromProto(const v1::JobHistory& proto,
                                      absl::Time now);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_JOB_HISTORY_CODEC_H_
