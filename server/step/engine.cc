#include "server/step/engine.h"

#include <iterator>
#include <utility>

namespace lockstep::server {

absl::Span<const std::byte> Contiguous(const PartGradient& gradient,
                                       std::vector<std::byte>& scratch) {
  if (gradient.slices.size() == 1) {
    return {gradient.slices[0].data, gradient.slices[0].size};
  }
  scratch.clear();
  for (const ByteSlice& slice : gradient.slices) {
    scratch.insert(scratch.end(), slice.data, slice.data + slice.size);
  }
  return scratch;
}

void ShardAnswers::Append(ShardAnswers&& other) {
  pushes.insert(pushes.end(), std::make_move_iterator(other.pushes.begin()),
                std::make_move_iterator(other.pushes.end()));
  takes.insert(takes.end(), std::make_move_iterator(other.takes.begin()),
               std::make_move_iterator(other.takes.end()));
  if (other.prepared.has_value()) prepared = other.prepared;
  means_changed = means_changed || other.means_changed;
}

}  // namespace lockstep::server
