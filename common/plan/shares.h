#ifndef LOCKSTEP_COMMON_PLAN_SHARES_H_
#define LOCKSTEP_COMMON_PLAN_SHARES_H_

namespace lockstep {

// Returns the number of shares of a step that `worker`, from 0, computes in
// strict mode: 1 if N >= A; otherwise the A gradients are spread over the N
// workers as evenly as possible, and the first workers take one more.
// `replicas_to_aggregate` is A, `total_num_replicas` is N; both must be > 0.
inline int SharesOf(int worker, int replicas_to_aggregate,
                    int total_num_replicas) {
  const int a = replicas_to_aggregate;
  const int n = total_num_replicas;
  return n >= a ? 1 : a / n + (worker < a % n ? 1 : 0);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_SHARES_H_
