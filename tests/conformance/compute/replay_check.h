#ifndef LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_REPLAY_CHECK_H_
#define LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_REPLAY_CHECK_H_

#include <string>

namespace lockstep::testing {

// Expects passes of a small network that are recorded and replayed to give the
// bits of those that are launched: over different batches of one shape, over a
// larger shape for which memory moves, and over the first shape again.
void ExpectReplaysAreLaunches(const std::string& backend_name);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_REPLAY_CHECK_H_
