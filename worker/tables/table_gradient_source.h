#ifndef LOCKSTEP_WORKER_TABLES_TABLE_GRADIENT_SOURCE_H_
#define LOCKSTEP_WORKER_TABLES_TABLE_GRADIENT_SOURCE_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "worker/data/batch_schedule.h"
#include "worker/loop/gradient_source.h"
#include "worker/memory/parameter_memory.h"
#include "worker/tables/table_workload.h"

namespace lockstep::worker {

// TableGradientSource computes the gradients of a model with tables, batch by
// batch. A batch and its random draws are functions of its index and the seed.
//
// Threads: as GradientSource.
// Borrows: workload and memory.
class TableGradientSource final : public GradientSource {
 public:
  // Workers must have different seeds, so that their draws differ.
  TableGradientSource(TableWorkload& workload, BatchSchedule schedule,
                      uint64_t seed, ParameterMemory& memory)
      : workload_(workload),
        schedule_(std::move(schedule)),
        seed_(seed),
        memory_(memory) {}

  absl::Status Prepare(const PassId& pass, int64_t index) override;
  //   kFailedPrecondition  Prepare() was last called for another batch
  absl::Status Begin(int64_t index, GradientPass& pass) override;
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override;

 private:
  TableWorkload& workload_;
  BatchSchedule schedule_;
  const uint64_t seed_;
  ParameterMemory& memory_;
  int64_t prepared_ = -1;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TABLES_TABLE_GRADIENT_SOURCE_H_
