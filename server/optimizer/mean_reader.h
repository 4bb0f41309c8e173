#ifndef LOCKSTEP_SERVER_OPTIMIZER_MEAN_READER_H_
#define LOCKSTEP_SERVER_OPTIMIZER_MEAN_READER_H_

#include <array>
#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "server/optimizer/gradient_slices.h"

namespace lockstep {

// Elements that are summed and applied at a time. A block of each operand
// together stays in the first-level cache.
inline constexpr size_t kBlockElements = 1024;

// MeanReader yields the mean of several gradients block by block: the first
// plus the second, plus the third, and so on, then one division, each
// rounded once. T is float or double.
//
// Threads: one reader belongs to one thread.
// Borrows: the slices and their bytes.
template <typename T>
class MeanReader {
 public:
  // `gradients`, at least one, are of equal length; `divisor` is 1 or more. A
  // divisor of 1 leaves the sum as it is.
  MeanReader(absl::Span<const GradientSlices> gradients, T divisor);
  MeanReader(const MeanReader&) = delete;
  MeanReader& operator=(const MeanReader&) = delete;

  // Returns the next `count` elements, 1 to kBlockElements, at any address.
  // They stay valid until the next call. That many must be left.
  const std::byte* Next(size_t count);

 private:
  const std::byte* Sum(size_t count);

  const T divisor_;
  absl::InlinedVector<GradientReader, 8> readers_;
  alignas(64) std::array<T, kBlockElements> sum_;
  alignas(64) std::array<T, kBlockElements> first_;
  alignas(64) std::array<T, kBlockElements> next_;
};

extern template class MeanReader<float>;
extern template class MeanReader<double>;

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_MEAN_READER_H_
