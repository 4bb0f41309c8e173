#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_JOB_CHECKS_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_JOB_CHECKS_H_

#include <string>

#include "absl/status/status.h"
#include "common/job/job_config.h"

namespace lockstep {

// What a job needs of this machine, before any process of it is started. These
// change nothing, but that checkpoint.directory is made.
//
// Errors: kInvalidArgument; messages name the field as the job file spells it,
//         the value and the fix.

// The model's kind is one, and the files of data can be read: those of the
// training set, and of the test set if there is an evaluator.
absl::Status CheckModelAndData(const JobConfig& job, bool has_evaluator);

// Each of `num_workers` workers has a batch of examples, by BatchSchedule's own
// rule. Not tried where CountTrainingExamples() cannot tell: of a gzipped text,
// and of a model with tables, whose files must be read for it. The workers of
// an elastic job may be fewer than now.
absl::Status CheckBatch(const JobConfig& job, int num_workers);

// Checkpoints can be written, as CheckpointStore::CheckWritable() tries; not
// tried for a job whose last step has its checkpoint, unless it `begins_anew`.
//
//   kFailedPrecondition  another job that runs has the directory
absl::Status CheckCheckpoints(const JobConfig& job, bool begins_anew);

// There are `gpus` devices: files nvidia0, nvidia1 ... in `devices`, which is
// /dev but for tests. Where a driver is reached in another way, there is no
// telling, and nothing is refused.
absl::Status CheckGpus(int gpus, const std::string& devices = "/dev");

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_JOB_CHECKS_H_
