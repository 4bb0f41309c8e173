#ifndef LOCKSTEP_TESTS_GOLDEN_GRADIENT_JSON_H_
#define LOCKSTEP_TESTS_GOLDEN_GRADIENT_JSON_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/step/gradient.h"
#include "tests/golden/trace.h"

namespace lockstep::golden {

// A sparse gradient in the form of traces.
struct SparseRecord {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> indices;
  size_t indices_rank = 1;
  Tensor values;
  std::optional<std::vector<int64_t>> dense_shape;
};

SparseRecord ReadSparse(DType dtype, const Json& json);

// Borrows: the record.
server::SparseGradientView Show(const SparseRecord& record);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_GRADIENT_JSON_H_
