#include "worker/scoring/averaged_values.h"

#include <cstddef>

#include "common/base/status_macros.h"
#include "common/job/variable_settings.h"

namespace lockstep::worker {

absl::StatusOr<std::vector<std::string>> NamesUsedAveraged(
    const JobConfig& job, const std::vector<VariableSpec>& variables) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<VariableSettings> settings,
                            SettingsOf(job, variables));
  std::vector<std::string> names;
  if (!job.moving_average.evaluate) return names;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (settings[i].averaged) names.push_back(variables[i].name);
  }
  return names;
}

void ReadAverages(const std::vector<std::string>& names,
                  CheckpointReader& checkpoint) {
  for (const std::string& name : names) {
    checkpoint.ReadInPlaceOf(name, TensorNameOf(name, kMovingAverageName));
  }
}

}  // namespace lockstep::worker
