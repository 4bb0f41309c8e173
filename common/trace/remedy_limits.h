#ifndef LOCKSTEP_COMMON_TRACE_REMEDY_LIMITS_H_
#define LOCKSTEP_COMMON_TRACE_REMEDY_LIMITS_H_

namespace lockstep {

// RemedyLimits are the ways to faster steps that the settings of a job rule
// out.
struct RemedyLimits {
  bool no_backups = false;          // a step needs the gradients of all workers
  bool chief_sets_backups = false;  // replicas_to_aggregate is AUTO
  bool no_servers = false;          // the workers hold the variables
  bool no_bfloat16 = false;         // gradient_wire_type must be VARIABLE
  bool no_shared_memory = false;    // servers of this job share none
  bool no_larger_pushes = false;    // micro_batches_per_push must be 1
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRACE_REMEDY_LIMITS_H_
