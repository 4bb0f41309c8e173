#ifndef LOCKSTEP_SERVER_SHARD_PARTS_LOCKED_PARTS_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_LOCKED_PARTS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/job/job_config.h"
#include "common/job/variable_settings.h"
#include "common/plan/variable_spec.h"
#include "server/state/file/state_layout.h"
#include "server/state/variable_store.h"
#include "server/update/slots.h"

namespace lockstep::server {

// LockedParts holds the parts of one server, their VariableStore, and the locks
// that the store requires of its callers. The classes that read, update and
// restore the parts share one object.
//
// Threads: `part_mutexes[p]` guards the tensors of part p, `record_mutex` the
//          calls of the store marked "record". The part's lock must be taken
//          first. Everything else is constant.
// Units:   sizes count bytes.
struct LockedParts {
  // `of_variables`: the settings of the job, by variable; `of_parts`: null if
  // the server has no part.
  LockedParts(const JobConfig& of_job, std::vector<VariableSpec> of_model,
              std::vector<PartSpec> of_server,
              std::vector<VariableSettings> of_variables,
              std::shared_ptr<VariableStore> of_parts);

  int num_parts() const { return static_cast<int>(parts.size()); }

  // Checks that the part exists.
  //
  //   kInvalidArgument  there is no such part
  absl::Status Check(int part) const;

  // The part must exist in the calls below.

  // The size of the part's value, and of each tensor beside it.
  size_t size(int part) const {
    return parts[part].count * ElementSize(parts[part].dtype);
  }
  // The number of the part's tensors: its value and those beside it.
  int num_tensors(int part) const {
    return 1 + static_cast<int>(slots[parts[part].variable].size());
  }
  // For messages: the part's number and its variable.
  std::string Name(int part) const;

  const JobConfig job;
  const std::vector<VariableSpec> variables;  // of the whole model
  const std::vector<PartSpec> parts;
  const std::vector<VariableSettings> settings;    // by variable
  const std::vector<OptimizerConfig> optimizers;   // of the job
  const std::vector<std::vector<SlotSpec>> slots;  // by variable

  const std::unique_ptr<Mutex[]> part_mutexes;
  mutable Mutex record_mutex;
  const std::shared_ptr<VariableStore> store;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_LOCKED_PARTS_H_
