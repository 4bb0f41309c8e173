#ifndef LOCKSTEP_WORKER_MODELS_LAYERS_PASS_CONTEXT_H_
#define LOCKSTEP_WORKER_MODELS_LAYERS_PASS_CONTEXT_H_

#include <cstdint>

namespace lockstep::worker {

// Properties of the pass that begins.
struct PassContext {
  // False: no dropout, and batch norm by moving statistics.
  bool training = true;
  uint64_t key = 0;    // of the random numbers of dropout
  int64_t length = 0;  // text: positions of each sequence
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_LAYERS_PASS_CONTEXT_H_
