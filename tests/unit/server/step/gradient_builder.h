#ifndef LOCKSTEP_TESTS_UNIT_SERVER_STEP_GRADIENT_BUILDER_H_
#define LOCKSTEP_TESTS_UNIT_SERVER_STEP_GRADIENT_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "common/numeric/dtype.h"
#include "common/numeric/float16.h"
#include "server/step/gradient.h"

// Gradients in short, for tests.
namespace lockstep::testing {

using Shape = std::vector<int64_t>;

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& elements) {
  std::vector<std::byte> bytes(elements.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

template <typename T>
std::vector<T> ElementsOf(const std::vector<std::byte>& bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

// `elements` rounded to `dtype`, as bytes.
inline std::vector<std::byte> Encode(DType dtype,
                                     const std::vector<double>& elements) {
  if (dtype == DType::kFloat64) return BytesOf(elements);
  if (dtype == DType::kFloat32) {
    return BytesOf(std::vector<float>(elements.begin(), elements.end()));
  }
  if (dtype == DType::kBFloat16) {
    std::vector<BFloat16> halves;
    for (double e : elements) {
      halves.push_back(ToBFloat16(static_cast<float>(e)));
    }
    return BytesOf(halves);
  }
  std::vector<Float16> halves;
  halves.reserve(elements.size());
  for (double e : elements) halves.push_back(ToFloat16(static_cast<float>(e)));
  return BytesOf(halves);
}

inline std::vector<double> Decode(DType dtype,
                                  const std::vector<std::byte>& bytes) {
  if (dtype == DType::kFloat64) return ElementsOf<double>(bytes);
  std::vector<double> elements;
  if (dtype == DType::kFloat32) {
    for (float e : ElementsOf<float>(bytes)) elements.push_back(e);
  } else if (dtype == DType::kBFloat16) {
    for (BFloat16 e : ElementsOf<BFloat16>(bytes)) {
      elements.push_back(ToFloat(e));
    }
  } else {
    for (Float16 e : ElementsOf<Float16>(bytes)) elements.push_back(ToFloat(e));
  }
  return elements;
}

inline std::vector<double> Zeros(const Shape& shape) {
  size_t count = 1;
  for (int64_t dim : shape) count *= static_cast<size_t>(dim);
  return std::vector<double>(count);
}

// Owns a dense gradient and can be passed where a view is asked for.
struct Dense {
  Dense(Shape shape, const std::vector<double>& elements,
        DType dtype = DType::kFloat32)
      : dtype(dtype),
        shape(std::move(shape)),
        values(Encode(dtype, elements)) {}
  operator server::DenseGradientView() const { return {dtype, shape, values}; }

  DType dtype;
  Shape shape;
  std::vector<std::byte> values;
};

// A gradient of shape [1].
inline Dense Scalar(double element, DType dtype = DType::kFloat32) {
  return Dense({1}, {element}, dtype);
}

// Owns a sparse gradient and can be passed where a view is asked for.
struct Sparse {
  Sparse(std::vector<int64_t> indices, Shape values_shape,
         const std::vector<double>& elements,
         std::optional<Shape> dense_shape = std::nullopt,
         DType dtype = DType::kFloat32)
      : dtype(dtype),
        indices(std::move(indices)),
        values_shape(std::move(values_shape)),
        values(Encode(dtype, elements)),
        dense_shape(std::move(dense_shape)) {}
  operator server::SparseGradientView() const {
    server::SparseGradientView view{dtype,        indices, indices_rank,
                                    values_shape, values,  std::nullopt};
    if (dense_shape.has_value()) view.dense_shape = *dense_shape;
    return view;
  }

  DType dtype;
  std::vector<int64_t> indices;
  size_t indices_rank = 1;
  Shape values_shape;
  std::vector<std::byte> values;
  std::optional<Shape> dense_shape;
};

// What a gradient that came out holds.
template <typename Gradient>
std::vector<double> Values(const Gradient& gradient) {
  return Decode(gradient.dtype, gradient.values);
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_SERVER_STEP_GRADIENT_BUILDER_H_
