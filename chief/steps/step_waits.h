#ifndef LOCKSTEP_CHIEF_STEPS_STEP_WAITS_H_
#define LOCKSTEP_CHIEF_STEPS_STEP_WAITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/operators/status_table.h"

namespace lockstep::chief {

// The waits of the current step, and the time of their beginning.
struct StepWaits {
  int64_t step = 0;  // the step that is to be committed
  absl::Time since;
  // By server: a text of its wait; empty: it is prepared.
  std::vector<std::string> servers;
  // The workers that have not pushed yet, the first of many; may be empty.
  std::string workers;

  // Returns at least one wait, each with its owner. If all servers are
  // prepared, the wait is that for the commit of ps 0.
  std::vector<StatusTable::Wait> List() const;
  // Returns the same in a few words: the workers, or else the first wait.
  std::string Summary() const;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STEPS_STEP_WAITS_H_
