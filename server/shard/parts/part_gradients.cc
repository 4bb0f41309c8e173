#include "server/shard/parts/part_gradients.h"

#include <iterator>

#include "common/plan/number_tree.h"

namespace lockstep::server {

std::vector<PartGradient> Present(absl::Span<const PartGradient> gradients) {
  std::vector<PartGradient> present;
  for (const PartGradient& gradient : gradients) {
    if (!gradient.absent) present.push_back(gradient);
  }
  return present;
}

std::vector<int> OrderOf(const JobConfig& job,
                         absl::Span<const PartGradient> gradients) {
  if (!job.shares_work()) return {};
  std::vector<bool> present;
  for (const PartGradient& gradient : gradients) {
    present.push_back(!gradient.absent);
  }
  return MergesOfPresent(present);
}

int64_t DivisorOf(const JobConfig& job,
                  absl::Span<const PartGradient> gradients) {
  return job.shares_work() ? job.micro_batches_per_step : std::ssize(gradients);
}

std::vector<GradientSlices> SlicesOf(absl::Span<const PartGradient> gradients) {
  std::vector<GradientSlices> slices;
  for (const PartGradient& gradient : gradients) {
    slices.push_back({gradient.slices, gradient.type});
  }
  return slices;
}

}  // namespace lockstep::server
