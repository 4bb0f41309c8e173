#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TROUBLE_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TROUBLE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::chief {

// CheckpointTrouble says which attempts to write a checkpoint an operator has
// to hear of: the first one that fails, then those that fail with another code,
// those of the same code once in kRepeat, and the first one that goes well
// again. Texts name files that never have the same name twice, so that they
// cannot be compared.
//
// Threads: belongs to the chief's loop.
class CheckpointTrouble {
 public:
  static constexpr absl::Duration kRepeat = absl::Minutes(1);

  // Each returns the line to show, if there is one.
  std::optional<std::string> Failed(int64_t step, const absl::Status& why,
                                    absl::Time now);
  std::optional<std::string> Saved(int64_t step);

 private:
  absl::StatusCode code_ = absl::StatusCode::kOk;  // of the newest attempt
  absl::Time said_;
  int64_t failures_ = 0;  // in a row
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TROUBLE_H_
