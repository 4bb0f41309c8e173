#ifndef LOCKSTEP_SERVER_SHARD_SHARD_FACTORY_H_
#define LOCKSTEP_SERVER_SHARD_SHARD_FACTORY_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/shard/shard.h"

namespace lockstep::server {

// The treatment of state of the job that exists already.
enum class Keep {
  kState,    // the job uses it, in memory or as a killed process left it
  kNothing,  // it is discarded, even if it is in use: once an epoch, so that a
             // call that was delayed does no harm
};

struct MadeShard {
  std::unique_ptr<Shard> shard;
  bool is_new = false;  // no state was found that had ever been open
};

// Opens the shard from the state of a killed process, or creates one. State
// that cannot be read counts as none. May take minutes.
//
//   the errors of ShardState::Open() except kNotFound and kDataLoss, and those
//   of ShardState::Create()
absl::StatusOr<MadeShard> MakeShard(const ShardState::Options& options,
                                    Keep keep);

// Checks that `shard` fits the chief's description of it. The job's rules, as
// DifferenceOfRules(), and the mirrors that sum its parts may differ if the
// state can be opened again with the new ones, as after a kill. `variables` are
// those of `shard`.
//
//   kFailedPrecondition  another layout, mode or number of replicas; or other
//                        rules or reducers, and reopening would lose steps
absl::Status CheckSameShard(const Shard& shard,
                            const std::vector<VariableSpec>& variables,
                            const ShardState::Options& wanted);

// True if a shard that CheckSameShard() admits has to be opened again, for
// other rules or reducers.
bool IsToOpenAgain(const Shard& shard, const ShardState::Options& wanted);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_SHARD_FACTORY_H_
