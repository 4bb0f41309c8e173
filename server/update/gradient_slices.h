#ifndef LOCKSTEP_SERVER_UPDATE_GRADIENT_SLICES_H_
#define LOCKSTEP_SERVER_UPDATE_GRADIENT_SLICES_H_

#include <cstddef>

#include "absl/types/span.h"
#include "common/numeric/dtype.h"

namespace lockstep::server {

// ByteSlice is a range of a gradient as it came off the wire: it may start
// at any address and end in the middle of an element.
//
// Borrows: the bytes.
struct ByteSlice {
  const std::byte* data = nullptr;
  size_t size = 0;  // bytes; 0 is allowed
};

// GradientSlices is one gradient of one part, elements in native byte order.
//
// Borrows: the slices and their bytes.
struct GradientSlices {
  absl::Span<const ByteSlice> slices;
  GradientType type = GradientType::kVariable;
};

// Returns the sum of the slices' sizes, in bytes.
size_t TotalSize(absl::Span<const ByteSlice> slices);

// GradientReader walks through the bytes of one gradient once, block by
// block.
//
// Threads: one reader belongs to one thread.
// Borrows: the slices and their bytes.
class GradientReader {
 public:
  explicit GradientReader(absl::Span<const ByteSlice> slices)
      : slices_(slices) {}

  // Returns the next `size` bytes: in place if one slice has them all,
  // otherwise copied to `scratch`, which must hold at least `size` bytes. At
  // least `size` bytes, and at least one, must be left.
  const std::byte* Next(size_t size, std::byte* scratch);

 private:
  void SkipFinishedSlices();

  absl::Span<const ByteSlice> slices_;
  size_t offset_ = 0;  // bytes of slices_.front() that have been read
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_GRADIENT_SLICES_H_
