#ifndef LOCKSTEP_SERVER_UPDATE_MEAN_READER_H_
#define LOCKSTEP_SERVER_UPDATE_MEAN_READER_H_

#include <array>
#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/dtype.h"
#include "common/numeric/float16.h"
#include "server/update/gradient_slices.h"

namespace lockstep::server {

// Elements that are summed and applied at a time: so few that the processor
// does not wait for the stores of one block before it begins the next.
inline constexpr size_t kBlockElements = 128;

// MeanReader yields the mean of several gradients block by block: a sum, in the
// order given or in that of a tree, then one division, each operation rounded
// once. T is float, double or Float16; gradients of bfloat16 are for
// float alone and become floats, block by block, as they are summed.
//
// Threads: one reader belongs to one thread.
// Borrows: the slices and their bytes.
template <typename T>
class MeanReader {
 public:
  // `gradients`, at least one, are of equal length; `divisor` is 1 or more. A
  // divisor of 1 leaves the sum as it is. `merges` is the order of the sum, as
  // MergesOfPresent() returns it; empty: the first plus the second, plus the
  // third, and so on.
  MeanReader(absl::Span<const GradientSlices> gradients, T divisor,
             absl::Span<const int> merges = {});
  MeanReader(const MeanReader&) = delete;
  MeanReader& operator=(const MeanReader&) = delete;

  // Returns the next `count` elements, 1 to kBlockElements, at any address.
  // They stay valid until the next call. That many must be left.
  const std::byte* Next(size_t count);

  // True if all elements that Next() has returned were finite.
  bool all_finite() const { return all_finite_; }

 private:
  struct Source {
    GradientReader reader;
    GradientType type;
    int merges;  // of the two topmost sums, when this gradient is on top
  };
  // A sum of some gradients, which lies in `memory` or in a gradient.
  struct Sum {
    const std::byte* elements = nullptr;
    alignas(64) std::array<T, kBlockElements> memory;
  };
  // The next elements of one gradient: in place, or copied to `block`.
  const std::byte* Read(Source& source, size_t count,
                        std::array<T, kBlockElements>& block);

  const T divisor_;
  bool all_finite_ = true;
  absl::InlinedVector<Source, 8> sources_;
  absl::InlinedVector<Sum, 3> sums_;  // as many as the order needs
  // The elements of a block that straddles slices.
  alignas(64) std::array<std::byte, kBFloat16Size * kBlockElements> packed_;
};

extern template class MeanReader<float>;
extern template class MeanReader<double>;
extern template class MeanReader<Float16>;

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_MEAN_READER_H_
