#ifndef LOCKSTEP_WORKER_SCORING_AVERAGED_VALUES_H_
#define LOCKSTEP_WORKER_SCORING_AVERAGED_VALUES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/job/job_config.h"
#include "common/plan/variable_spec.h"

namespace lockstep::worker {

// Returns the names of the variables whose moving averages take the place of
// their values wherever a checkpoint of the job is used, not trained: all that
// have one, or none if moving_average.evaluate is false.
//
// Errors: those of SettingsOf().
absl::StatusOr<std::vector<std::string>> NamesUsedAveraged(
    const JobConfig& job, const std::vector<VariableSpec>& variables);

// From now on `checkpoint` reads the averages of these variables.
void ReadAverages(const std::vector<std::string>& names,
                  CheckpointReader& checkpoint);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SCORING_AVERAGED_VALUES_H_
