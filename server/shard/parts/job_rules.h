#ifndef LOCKSTEP_SERVER_SHARD_PARTS_JOB_RULES_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_JOB_RULES_H_

#include <string>
#include <vector>

#include "common/job/job_config.h"
#include "common/plan/variable_spec.h"

namespace lockstep::server {

// Compares what servers compute by: update rules, learning rates, averages,
// constraints, untrained variables, the norm of the mean, the refusal of
// gradients that are not finite, and the order of sums. These may differ
// between two runs of a job, but all servers must have the same ones. Other
// fields do not count.
//
// Returns the first difference as the job file spells it, with both values:
// "optimizer.momentum: 0.9 -> 0.8"; without them if they are enumerations;
// empty: the rules are the same.
std::string DifferenceOfRules(const JobConfig& before, const JobConfig& after);

// True if both jobs keep tensors of the same names beside each variable. Some
// rules have a tensor or not, depending on a number. False if a job does not
// fit the variables.
bool HaveSameTensors(const JobConfig& a, const JobConfig& b,
                     const std::vector<VariableSpec>& variables);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_JOB_RULES_H_
