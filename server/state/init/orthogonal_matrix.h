#ifndef LOCKSTEP_SERVER_STATE_INIT_ORTHOGONAL_MATRIX_H_
#define LOCKSTEP_SERVER_STATE_INIT_ORTHOGONAL_MATRIX_H_

#include <cstdint>
#include <vector>

#include "server/state/init/counter_random.h"

namespace lockstep::server {

// A random matrix of `rows` times `cols`, row-major, whose columns (or rows,
// if there are fewer of them) are orthonormal: what is left of normal numbers
// when each vector is made orthogonal to those before it, twice, so that
// nothing of them remains by rounding. It is drawn evenly from all such
// matrices, as TensorFlow's orthogonal initializer draws.
//
// Cost: about 4 max(rows, cols) min(rows, cols)^2 operations.
std::vector<double> OrthogonalMatrix(const CounterRandom& random, int64_t rows,
                                     int64_t cols);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_INIT_ORTHOGONAL_MATRIX_H_
