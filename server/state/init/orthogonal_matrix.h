#ifndef LOCKSTEP_SERVER_STATE_INIT_ORTHOGONAL_MATRIX_H_
#define LOCKSTEP_SERVER_STATE_INIT_ORTHOGONAL_MATRIX_H_

#include <cstdint>
#include <vector>

#include "server/state/init/counter_random.h"

namespace lockstep::server {

// Returns a random matrix of `rows` times `cols`, row-major, whose columns (or
// rows, if there are fewer of them) are orthonormal: vectors of normal numbers,
// each made orthogonal to the previous ones. The distribution is uniform over
// all such matrices, as that of TensorFlow's orthogonal initializer.
//
// Cost: about 4 max(rows, cols) min(rows, cols)^2 operations.
std::vector<double> OrthogonalMatrix(const CounterRandom& random, int64_t rows,
                                     int64_t cols);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_INIT_ORTHOGONAL_MATRIX_H_
