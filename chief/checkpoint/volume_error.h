#ifndef LOCKSTEP_CHIEF_CHECKPOINT_VOLUME_ERROR_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_VOLUME_ERROR_H_

#include "absl/status/status.h"

namespace lockstep::chief {

// Returns the error of an operation on a file of a new checkpoint, which names
// its path alone, with the field of the job file before it, and for a full
// volume (kResourceExhausted) how much room it needs. kOk stays kOk.
absl::Status OfVolume(const absl::Status& status);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_VOLUME_ERROR_H_
