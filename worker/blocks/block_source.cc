#include "worker/blocks/block_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

// One micro-batch: what it reports goes into the sums, and after the last one
// the sums go on to the pass of the block.
class BlockSource::NumberPass final : public GradientPass {
 public:
  NumberPass(BlockSource& block, GradientPass& pass)
      : block_(block), pass_(pass) {}

  bool HasAllValues() const override { return pass_.HasAllValues(); }
  absl::Status NeedValues(size_t first, size_t count) override {
    return pass_.NeedValues(first, count);
  }
  absl::Status PullRows() override { return pass_.PullRows(); }
  absl::Status CheckWanted() override { return pass_.CheckWanted(); }

  void GradientReady(size_t variable) override {
    block_.clipper_.Ready(variable, [this](size_t clipped, bool absent) {
      Add(clipped, absent);
    });
  }
  // Through the clipper, too: Add() writes the block's sum to the memory of the
  // gradient, which must hold zeros until the clipper has read it.
  void GradientAbsent(size_t variable) override {
    block_.clipper_.Absent(variable, [this](size_t clipped, bool absent) {
      Add(clipped, absent);
    });
  }

  void EndClipping() {
    block_.clipper_.EndPass(
        [this](size_t clipped, bool absent) { Add(clipped, absent); });
  }

 private:
  void Add(size_t variable, bool absent) {
    const bool present =
        block_.count_ == 1 ? !absent : block_.Add(variable, absent);
    if (block_.number_ + 1 < block_.count_) return;
    if (present) {
      pass_.GradientReady(variable);
    } else {
      pass_.GradientAbsent(variable);
    }
  }

  BlockSource& block_;
  GradientPass& pass_;
};

BlockSource::BlockSource(GradientSource& source,
                         const std::vector<VariableSpec>& variables,
                         int numbers, GradientClipper& clipper,
                         ParameterMemory& memory)
    : source_(source),
      variables_(variables),
      numbers_(numbers),
      clipper_(clipper),
      memory_(memory),
      sums_(variables.size()),
      row_sums_(variables.size()) {}

bool BlockSource::Add(size_t variable, bool absent) {
  const VariableSpec& spec = variables_[variable];
  if (!spec.is_table()) {
    return sums_[variable].Add(number_, count_, spec.dtype,
                               memory_.gradient(variable), absent);
  }
  std::optional<RowSum> sum = row_sums_[variable].Add(
      number_, count_, spec.dtype, memory_.rows(variable), absent);
  if (!sum.has_value()) return false;
  memory_.SetRowSum(variable, *std::move(sum));
  return true;
}

absl::Status BlockSource::Prepare(const PassId& pass, int64_t index) {
  pass_ = pass;
  index_ = index;
  count_ = std::min(pass.block, numbers_ - pass.slot);
  for (const VariableSpec& variable : variables_) {
    if (count_ == 1) break;
    if (BlockSum::MaySum(variable.dtype)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("micro_batches_per_push is ", pass.block, ", but ",
                     variable.name, " is of bfloat16: leave the field out"));
  }
  PassId first = pass;
  first.block = 1;
  return source_.Prepare(first, index);
}

absl::Status BlockSource::Begin(int64_t index, GradientPass& pass) {
  number_ = 0;
  for (BlockSum& sum : sums_) sum.Reset();
  for (RowBlockSum& sum : row_sums_) sum.Reset();
  NumberPass wrapped(*this, pass);
  return source_.Begin(index, wrapped);
}

absl::StatusOr<GradientResult> BlockSource::FinishNumber(GradientPass& pass) {
  clipper_.BeginPass();
  NumberPass wrapped(*this, pass);
  LOCKSTEP_ASSIGN_OR_RETURN(const GradientResult result,
                            source_.Finish(wrapped));
  wrapped.EndClipping();
  ++number_;
  return result;
}

absl::StatusOr<GradientResult> BlockSource::Finish(GradientPass& pass) {
  LOCKSTEP_ASSIGN_OR_RETURN(GradientResult all, FinishNumber(pass));
  double losses = all.loss * static_cast<double>(all.examples);
  while (number_ < count_) {
    LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
    PassId next = pass_;
    next.slot += number_;
    next.block = 1;
    LOCKSTEP_RETURN_IF_ERROR(source_.Prepare(next, index_ + number_));
    // A program may have taken the values of the micro-batch before.
    LOCKSTEP_RETURN_IF_ERROR(pass.PullRows());
    NumberPass wrapped(*this, pass);
    LOCKSTEP_RETURN_IF_ERROR(source_.Begin(index_ + number_, wrapped));
    LOCKSTEP_ASSIGN_OR_RETURN(const GradientResult result, FinishNumber(pass));
    losses += result.loss * static_cast<double>(result.examples);
    all.examples += result.examples;
    all.non_finite += result.non_finite;
    all.loss = all.examples > 0 ? losses / static_cast<double>(all.examples)
                                : result.loss;
  }
  return all;
}

}  // namespace lockstep::worker
