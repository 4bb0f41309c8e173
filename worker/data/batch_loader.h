#ifndef LOCKSTEP_WORKER_DATA_BATCH_LOADER_H_
#define LOCKSTEP_WORKER_DATA_BATCH_LOADER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/data/batch.h"
#include "worker/data/batch_schedule.h"
#include "worker/data/dataset.h"

namespace lockstep::worker {

// Returns a batch with the examples `ids` of `dataset`, in that order. Byte b
// becomes exactly b / 255, rounded to float.
//
//   kInvalidArgument  an id outside [0, num_examples)
absl::StatusOr<Batch> LoadBatch(const Dataset& dataset,
                                absl::Span<const int64_t> ids);

// Returns a source whose examples `schedule` chooses from `dataset`, which must
// outlive it. One thread at a time may use it.
BatchSource MakeBatchSource(BatchSchedule schedule, const Dataset& dataset);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_BATCH_LOADER_H_
