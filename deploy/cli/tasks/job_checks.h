#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_JOB_CHECKS_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_JOB_CHECKS_H_

#include <string>

#include "absl/status/status.h"
#include "common/job/beginning.h"
#include "common/job/job_config.h"

namespace lockstep::cli {

// Checks of a job's needs on this machine, before any of its processes starts.
// They change nothing: a check removes the files and directories that it made.
//
// Errors: kInvalidArgument; messages name the field as the job file spells it,
//         the value and the fix.

// The programs that compute the tasks of a run.
struct ComputingPrograms {
  bool own_workers = false;  // the user's, not the built-in worker
  bool has_evaluator = false;
  bool own_evaluator = false;
};

// Checks that the programs can compute the model's kind, and that the data
// files can be read: those of the training set, and of the test set if there is
// an evaluator.
absl::Status CheckModelAndData(const JobConfig& job,
                               const ComputingPrograms& programs);

// Checks that the files of the test set, if there is one, can be read.
absl::Status CheckTestSet(const JobConfig& job);

// Checks that each of `num_workers` workers has a batch of examples, by the
// rule of BatchSchedule. Skipped for programs of the user, if
// CountTrainingExamples() cannot count, and for tables of more than 16 MiB,
// which would have to be read: the workers refuse then. The workers of an
// elastic job may be fewer than now.
absl::Status CheckBatch(const JobConfig& job, int num_workers);

// Checks that checkpoints can be written, by CheckpointStore::CheckWritable();
// skipped for a job whose last step has its checkpoint, unless it begins anew.
// The checkpoint of the step `beginning` must be there; only its manifest is
// read.
//
//   kFailedPrecondition  another running job holds the directory
absl::Status CheckCheckpoints(const JobConfig& job, const Beginning& beginning);

// Checks that summary.directory, if there is one, can be written to.
absl::Status CheckSummaries(const JobConfig& job);

// Checks that there are `gpus` devices: files nvidia0, nvidia1 ... in
// `devices`, which is /dev except in tests. If a driver uses other files, the
// number is unknown, and nothing is refused.
absl::Status CheckGpus(int gpus, const std::string& devices = "/dev");

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_JOB_CHECKS_H_
