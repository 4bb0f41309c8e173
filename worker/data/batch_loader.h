#ifndef LOCKSTEP_WORKER_DATA_BATCH_LOADER_H_
#define LOCKSTEP_WORKER_DATA_BATCH_LOADER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/data/batch.h"
#include "worker/data/batch_schedule.h"
#include "worker/data/dataset.h"

namespace lockstep::worker {

// Copies the examples `ids` of `dataset` into a batch, in that order. Byte b
// becomes exactly b / 255 in float arithmetic.
//
//   kInvalidArgument  an id outside [0, num_examples)
absl::StatusOr<Batch> LoadBatch(const Dataset& dataset,
                                absl::Span<const int64_t> ids);

// Joins the two: `schedule` chooses the examples and `dataset`, which must
// outlive the source, holds them. The source is used by one thread at a time.
BatchSource MakeBatchSource(BatchSchedule schedule, const Dataset& dataset);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_BATCH_LOADER_H_
