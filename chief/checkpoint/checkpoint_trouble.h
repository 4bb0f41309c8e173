#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TROUBLE_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TROUBLE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::chief {

// CheckpointTrouble decides which attempts to write a checkpoint are reported
// to operators: the first one that fails, later ones that fail with another
// code, those of the same code once per kRepeat, and the first success after a
// failure. Texts are not compared: they contain names of files, which never
// repeat.
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
