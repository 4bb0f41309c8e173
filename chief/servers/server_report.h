#ifndef LOCKSTEP_CHIEF_SERVERS_SERVER_REPORT_H_
#define LOCKSTEP_CHIEF_SERVERS_SERVER_REPORT_H_

#include <cstdint>
#include <vector>

#include "common/plan/run_settings.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep::chief {

// The state of one server when the chief takes it over, at its own start or
// because a server has been away.
struct ServerReport {
  bool has_parts = true;        // one without parts has no state to lose
  bool active = false;          // open, with all gradients pushed so far
  int64_t committed_step = -1;  // of its state; -1: it has none
  int64_t prepared_step = -1;   // the step that it can commit; -1: none
  RunSettings settings{};       // of its state
  int64_t attempt = 0;          // of the current step, if it is open
  std::vector<WorkerStanding> workers{};  // those that it keeps
  // The epoch in which its state was opened last; 0: never.
  uint64_t opened_epoch = 0;
  // False: a mirror that does not take part in the job. The chief has not asked
  // it, so the other fields have their default values.
  bool takes_part = true;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVERS_SERVER_REPORT_H_
