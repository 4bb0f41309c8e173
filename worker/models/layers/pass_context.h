#ifndef LOCKSTEP_WORKER_MODELS_LAYERS_PASS_CONTEXT_H_
#define LOCKSTEP_WORKER_MODELS_LAYERS_PASS_CONTEXT_H_

#include <cstdint>

namespace lockstep {

// What a layer may need to know about the pass that begins.
struct PassContext {
  bool training = true;  // not: no dropout, and batch norm by moving statistics
  uint64_t key = 0;      // of the random numbers of dropout
  int64_t length = 0;    // text: positions of each sequence
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_MODELS_LAYERS_PASS_CONTEXT_H_
