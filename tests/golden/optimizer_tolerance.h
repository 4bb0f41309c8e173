#ifndef LOCKSTEP_TESTS_GOLDEN_OPTIMIZER_TOLERANCE_H_
#define LOCKSTEP_TESTS_GOLDEN_OPTIMIZER_TOLERANCE_H_

#include "common/job/job_config.h"
#include "common/numeric/dtype.h"

namespace lockstep::golden {

// The kinds of gradient that TensorFlow's kernels treat differently.
enum class GradientForm {
  kDense,
  kRows,    // sparse, rows of two values or more
  kColumn,  // sparse, rows of one value
};

// The difference of TensorFlow's kernels from single operations that round
// once, in units in the last place. It comes from their vectorised reciprocal
// square roots and powers; 0 requires equal bits.
struct Distance {
  double variable = 0;
  double slot = 0;  // of momentum (RMSProp), accum_update, linear; others 0
};

Distance MeasuredDistance(const OptimizerConfig& config, DType dtype,
                          GradientForm form);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_OPTIMIZER_TOLERANCE_H_
