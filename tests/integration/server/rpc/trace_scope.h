#ifndef LOCKSTEP_TESTS_INTEGRATION_SERVER_RPC_TRACE_SCOPE_H_
#define LOCKSTEP_TESTS_INTEGRATION_SERVER_RPC_TRACE_SCOPE_H_

#include <cstddef>

#include "tests/golden/trace.h"

namespace lockstep::testing {

// Returns how many of the first operations of a job of sync_loop.jsonl the
// services can carry out as TensorFlow did. A job ends early where they are
// meant to do something else:
//
//   lines 15 to 17, 29, 47,  a chief that starts again issues initial tokens
//   53, 59, 65               once more; servers have kept those of before
//   13, 18                   the chief is away, and as many gradients gather as
//                            a step needs: servers keep the take, and update at
//                            once
//   22                       a chief that starts again lets m and v of a sparse
//                            Adam decay once more; servers have kept the take
//   20, 25, 38               a worker beyond the total makes a pass: servers
//                            refuse it
//   64                       a worker is restarted with a token, which
//                            TensorFlow loses, and once more while it waits:
//                            the chief expires both processes, and the token
//                            goes back
size_t ServedOperations(const golden::Json& scenario);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_INTEGRATION_SERVER_RPC_TRACE_SCOPE_H_
