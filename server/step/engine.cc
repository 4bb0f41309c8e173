#include "server/step/engine.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

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

absl::Status CheckPartRange(int first_part, int64_t num_parts,
                            int64_t all_parts) {
  // In 64 bits, since both numbers come from another process.
  const int64_t end = first_part + num_parts;
  if (first_part >= 0 && num_parts >= 1 && end <= all_parts) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "parts ", first_part, " to ", end - 1, " are not all among the ",
      all_parts, " parts of this server"));
}

absl::Status NotMirrored() {
  return absl::FailedPreconditionError(
      "the servers of this job exchange no means: strategy.kind is not "
      "MULTI_WORKER_MIRRORED");
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
