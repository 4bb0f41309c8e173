#ifndef LOCKSTEP_TESTS_CONFORMANCE_GOLDEN_REPLAY_H_
#define LOCKSTEP_TESTS_CONFORMANCE_GOLDEN_REPLAY_H_

#include "server/sync/sparse_accumulator.h"
#include "tests/conformance/golden/golden_reader.h"

// One function per kind of trace. Each does the operations of one scenario and
// records a gtest failure for every answer that differs from TensorFlow's.
namespace lockstep::golden {

void ReplayDenseAccumulator(const Json& scenario);

// `input` may be kCanonical for scenarios whose "canonical_input" is true.
void ReplaySparseAccumulator(const Json& scenario, SparseInput input);

// Skips a queue that has a capacity: TokenQueue has none.
void ReplayTokenQueue(const Json& scenario);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_CONFORMANCE_GOLDEN_REPLAY_H_
