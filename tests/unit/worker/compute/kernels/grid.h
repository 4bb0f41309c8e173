#ifndef LOCKSTEP_TESTS_UNIT_WORKER_COMPUTE_KERNELS_GRID_H_
#define LOCKSTEP_TESTS_UNIT_WORKER_COMPUTE_KERNELS_GRID_H_

#include <cstdint>

namespace lockstep::worker::kernels {

// Stores the value of each (row, column), as a device does.
template <typename F>
void Grid(int64_t rows, int64_t n, const F& f) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      f.Target()[row * n + column] = f.Value(row, column);
    }
  }
}

}  // namespace lockstep::worker::kernels

#endif  // LOCKSTEP_TESTS_UNIT_WORKER_COMPUTE_KERNELS_GRID_H_
