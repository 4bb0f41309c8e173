#ifndef LOCKSTEP_SERVER_STEP_GRADIENT_H_
#define LOCKSTEP_SERVER_STEP_GRADIENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/numeric/dtype.h"

// The input of gradient accumulators (views of the caller's memory) and their
// output (values).
//
// Units: elements lie row-major in the machine's byte order; views need no
//        alignment for them.
namespace lockstep::server {

// How an accumulator combines gradients.
enum class Reduction { kMean, kSum };

// The declared shape of a variable: nullopt if the rank is unknown; a negative
// dimension is unknown.
using PartialShape = std::optional<std::vector<int64_t>>;

// Checks that `shape` fits `declared`; an unknown dimension matches every
// length.
//
//   kInvalidArgument  names both shapes
absl::Status CheckCompatible(const PartialShape& declared,
                             absl::Span<const int64_t> shape);

struct DenseGradientView {
  DType dtype = DType::kFloat32;
  absl::Span<const int64_t> shape;
  absl::Span<const std::byte> values;
};

struct DenseGradient {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<std::byte> values;
};

// Some rows of a gradient; row i of `values` belongs at `indices[i]`.
struct SparseGradientView {
  DType dtype = DType::kFloat32;
  absl::Span<const int64_t> indices;
  size_t indices_rank = 1;                 // any other rank is refused
  absl::Span<const int64_t> values_shape;  // first dimension: number of rows
  absl::Span<const std::byte> values;
  // Shape of the whole, if the sender knows it; empty is not the same as none.
  std::optional<absl::Span<const int64_t>> dense_shape;
};

struct SparseGradient {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> indices;
  std::vector<int64_t> values_shape;
  std::vector<std::byte> values;
  std::vector<int64_t> dense_shape;  // first dimension -1 where unknown
};

// Checks that a message can mean a tensor of `dtype` at all, as TensorFlow's
// type system guarantees it to an accumulator.
//
//   kInvalidArgument  another element type; a negative dimension; a length of
//                     `values` that is not that of the shape
absl::Status CheckForm(DType dtype, const DenseGradientView& gradient);
absl::Status CheckForm(DType dtype, const SparseGradientView& gradient);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_GRADIENT_H_
