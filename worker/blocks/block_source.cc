#include "worker/blocks/block_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {

BlockSource::BlockSource(GradientSource& source,
                         const std::vector<VariableSpec>& variables,
                         int numbers, GradientClipper& clipper,
                         ParameterMemory& memory)
    : PassSeries(source, clipper),
      variables_(variables),
      numbers_(numbers),
      memory_(memory),
      sums_(variables.size()),
      row_sums_(variables.size()) {}

absl::StatusOr<int> BlockSource::Open(const PassId& pass, int64_t /*index*/) {
  const int count = std::min(pass.block, numbers_ - pass.slot);
  for (const VariableSpec& variable : variables_) {
    if (count == 1) break;
    if (BlockSum::MaySum(variable.dtype)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("micro_batches_per_push is ", pass.block, ", but ",
                     variable.name, " is of bfloat16: leave the field out"));
  }
  return count;
}

PassSeries::Part BlockSource::PartOf(const PassId& pass, int64_t index,
                                     int number) const {
  Part part = {pass, index + number};
  part.pass.slot += number;
  part.pass.block = 1;
  return part;
}

void BlockSource::Reset() {
  for (BlockSum& sum : sums_) sum.Reset();
  for (RowBlockSum& sum : row_sums_) sum.Reset();
}

bool BlockSource::Add(size_t variable, bool absent) {
  const VariableSpec& spec = variables_[variable];
  if (!spec.is_table()) {
    return sums_[variable].Add(number(), count(), spec.dtype,
                               memory_.gradient(variable), absent);
  }
  std::optional<RowSum> sum = row_sums_[variable].Add(
      number(), count(), spec.dtype, memory_.rows(variable), absent);
  if (!sum.has_value()) return false;
  memory_.SetRowSum(variable, *std::move(sum));
  return true;
}

GradientResult BlockSource::Joined(
    const std::vector<GradientResult>& results) const {
  GradientResult all;
  for (const GradientResult& result : results) {
    all.loss += result.loss * static_cast<double>(result.examples);
    all.examples += result.examples;
    all.non_finite += result.non_finite;
  }
  all.loss = all.examples > 0 ? all.loss / static_cast<double>(all.examples)
                              : results.back().loss;
  return all;
}

}  // namespace lockstep::worker
