#include "server/update/gradient_slices.h"

#include <algorithm>
#include <cstring>

namespace lockstep::server {

size_t TotalSize(absl::Span<const ByteSlice> slices) {
  size_t total = 0;
  for (const ByteSlice& slice : slices) total += slice.size;
  return total;
}

const std::byte* GradientReader::Next(size_t size, std::byte* scratch) {
  SkipFinishedSlices();
  if (slices_.front().size - offset_ >= size) {
    const std::byte* bytes = slices_.front().data + offset_;
    offset_ += size;
    return bytes;
  }
  for (size_t done = 0; done < size;) {
    SkipFinishedSlices();
    const ByteSlice& slice = slices_.front();
    const size_t taken = std::min(size - done, slice.size - offset_);
    std::memcpy(scratch + done, slice.data + offset_, taken);
    offset_ += taken;
    done += taken;
  }
  return scratch;
}

void GradientReader::SkipFinishedSlices() {
  while (offset_ == slices_.front().size) {
    slices_.remove_prefix(1);
    offset_ = 0;
  }
}

}  // namespace lockstep::server
