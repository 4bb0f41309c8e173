#ifndef LOCKSTEP_CHIEF_SERVERS_STATE_MAP_H_
#define LOCKSTEP_CHIEF_SERVERS_STATE_MAP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/job/variable_settings.h"
#include "common/plan/plan.h"

namespace lockstep::chief {

// StateMap names the tensors and scalars of a job's state, and their places on
// the servers.
struct StateMap {
  Plan plan;
  // By variable, the names of the tensors that are kept beside it.
  std::vector<std::vector<std::string>> slots;
  std::vector<std::string> scalars;  // of the optimizers

  // The name in checkpoints of a variable's value (tensor 0), or of a
  // tensor that is kept beside it.
  std::string TensorName(size_t variable, size_t tensor) const {
    const std::string& name = plan.variables[variable].name;
    return tensor == 0 ? name : TensorNameOf(name, slots[variable][tensor - 1]);
  }
  // The name in checkpoints of a growing table's keys.
  std::string KeysName(size_t variable) const {
    return TensorNameOf(plan.variables[variable].name, kKeysName);
  }
};

// JobSnapshot describes the copies that servers have made aside, all of one
// step.
struct JobSnapshot {
  std::vector<float> scalars;  // of the optimizers, as StateMap::scalars
  // By server, then part: rows of growing tables.
  std::vector<std::vector<int64_t>> rows = {};
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVERS_STATE_MAP_H_
