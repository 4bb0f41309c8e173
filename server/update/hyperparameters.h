#ifndef LOCKSTEP_SERVER_UPDATE_HYPERPARAMETERS_H_
#define LOCKSTEP_SERVER_UPDATE_HYPERPARAMETERS_H_

#include "common/job/job_config.h"
#include "server/update/adaptive_kernels.h"
#include "server/update/slots.h"
#include "server/update/torch_kernels.h"
#include "server/update/update_kernels.h"

namespace lockstep::server {

// The numbers that the kernels of one update need. For TensorFlow's rules,
// numbers of a job are first rounded to float32, even for float64 variables,
// which therefore see 0.1 as 0.10000000149011612.
struct Hyperparameters {
  float learning_rate = 0;
  float momentum = 0;
  AdamHyperparameters adam;
  RmsPropHyperparameters rms_prop;
  AdadeltaHyperparameters adadelta;
  FtrlHyperparameters ftrl;
  ProximalHyperparameters proximal;  // AdagradDA and the proximal rules
  TorchSgd torch_sgd;                // Sgd alone
  TorchAdam torch_adam;              // AdamTorch and AdamW alone
};

// The state of a variable besides its optimizer's configuration.
struct VariableState {
  int64_t updates = 0;  // before this one
  bool decays = true;   // it has weight decay
  int64_t step = 0;     // committed before this update
};

// Must be called while subnormal numbers are flushed, like the kernels.
Hyperparameters MakeHyperparameters(const OptimizerConfig& config,
                                    double learning_rate,
                                    const AdamPowers& powers,
                                    const VariableState& variable = {});

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_HYPERPARAMETERS_H_
