#ifndef LOCKSTEP_SERVER_UPDATE_ADAPTIVE_KERNELS_H_
#define LOCKSTEP_SERVER_UPDATE_ADAPTIVE_KERNELS_H_

#include <cstdint>

#include "common/numeric/float16.h"
#include "server/update/update_kernels.h"

// The dense update rules that scale each element by its own history, in the
// order of operations of TensorFlow's kernels. As in update_kernels.h, every
// operation rounds once and hyper-parameters are given as float32.
//
// A reciprocal square root is 1 / sqrt(x) in two roundings, and a power is that
// of the C library. TensorFlow's own differ from these by up to 3 units in the
// last place in float32, depending on the processor.
namespace lockstep::server {

struct RmsPropHyperparameters {
  float learning_rate = 0;
  float decay = 0;
  float momentum = 0;
  float epsilon = 0;
  bool centered = false;
};

struct AdadeltaHyperparameters {
  float learning_rate = 0;
  float rho = 0;
  float epsilon = 0;
};

struct FtrlHyperparameters {
  float learning_rate = 0;
  float power = -0.5f;  // of the learning rate
  float l1 = 0;
  float l2 = 0;  // as EffectiveL2() gives it
  float shrinkage = 0;
};

// AdagradDA and the proximal rules. If l1 is 0, nothing is shrunk.
struct ProximalHyperparameters {
  float learning_rate = 0;
  float l1 = 0;
  float l2 = 0;
  // AdagradDA: the global step that the update leads to. A double, because the
  // step before it may be the largest int64_t.
  double step = 1;
};

// l2 + beta / (2 max(learning_rate, 1e-36)): Ftrl's beta acts through l2.
float EffectiveL2(float l2, float beta, float learning_rate);

// Slot 0 is the accumulator.
void AdagradKernel(const UpdateBlock<float>& block, float rate);
void AdagradKernel(const UpdateBlock<double>& block, float rate);
void AdagradKernel(const UpdateBlock<Float16>& block, float rate);

// Slots are rms, then mg if centered, then momentum.
void RmsPropKernel(const UpdateBlock<float>& block,
                   const RmsPropHyperparameters& hyper);
void RmsPropKernel(const UpdateBlock<double>& block,
                   const RmsPropHyperparameters& hyper);
void RmsPropKernel(const UpdateBlock<Float16>& block,
                   const RmsPropHyperparameters& hyper);

// Slots are accum, then accum_update.
void AdadeltaKernel(const UpdateBlock<float>& block,
                    const AdadeltaHyperparameters& hyper);
void AdadeltaKernel(const UpdateBlock<double>& block,
                    const AdadeltaHyperparameters& hyper);
void AdadeltaKernel(const UpdateBlock<Float16>& block,
                    const AdadeltaHyperparameters& hyper);

// Slots are accum, then linear.
void FtrlKernel(const UpdateBlock<float>& block,
                const FtrlHyperparameters& hyper);
void FtrlKernel(const UpdateBlock<double>& block,
                const FtrlHyperparameters& hyper);
void FtrlKernel(const UpdateBlock<Float16>& block,
                const FtrlHyperparameters& hyper);

// Slots are gradient_accumulator, then gradient_squared_accumulator.
void AdagradDaKernel(const UpdateBlock<float>& block,
                     const ProximalHyperparameters& hyper);
void AdagradDaKernel(const UpdateBlock<double>& block,
                     const ProximalHyperparameters& hyper);
void AdagradDaKernel(const UpdateBlock<Float16>& block,
                     const ProximalHyperparameters& hyper);

// Slot 0 is the accumulator.
void ProximalAdagradKernel(const UpdateBlock<float>& block,
                           const ProximalHyperparameters& hyper);
void ProximalAdagradKernel(const UpdateBlock<double>& block,
                           const ProximalHyperparameters& hyper);
void ProximalAdagradKernel(const UpdateBlock<Float16>& block,
                           const ProximalHyperparameters& hyper);

void ProximalGradientDescentKernel(const UpdateBlock<float>& block,
                                   const ProximalHyperparameters& hyper);
void ProximalGradientDescentKernel(const UpdateBlock<double>& block,
                                   const ProximalHyperparameters& hyper);
void ProximalGradientDescentKernel(const UpdateBlock<Float16>& block,
                                   const ProximalHyperparameters& hyper);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_ADAPTIVE_KERNELS_H_
