#include "server/step/strict/part_work.h"

#include <utility>

#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/numeric/parallel_blocks.h"

namespace lockstep::server {
namespace {

// Returns whether the mean is finite.
absl::StatusOr<bool> Compute(PartUpdater& updater, PartWork& work) {
  switch (work.kind) {
    case PartWork::Kind::kUpdate:
      return updater.Update(work.part, work.step, work.gradients);
    case PartWork::Kind::kApply:
      LOCKSTEP_RETURN_IF_ERROR(
          updater.ApplyMean(work.part, work.step, work.norm));
      PassFaultPoint(FaultPoint::kPsNormHalfDone);
      return true;
    case PartWork::Kind::kKeep: {
      LOCKSTEP_ASSIGN_OR_RETURN(
          work.squares,
          updater.KeepMean(work.part, std::move(work.gradients[0])));
      return true;  // checked by the mirror that computed it
    }
    case PartWork::Kind::kMeasure:
      break;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const PartUpdater::Measured measured,
                            updater.MeasureMean(work.part, work.gradients));
  work.squares = measured.squares;
  return measured.finite;
}

}  // namespace

void BlockedWork::Add(PartWork work) {
  by_part_.insert_or_assign(work.part, std::move(work));
}

std::vector<PartWork> BlockedWork::TakeOut(int part) {
  std::vector<PartWork> work;
  auto found = by_part_.extract(part);
  if (!found.empty()) work.push_back(std::move(found.mapped()));
  return work;
}

std::vector<int> BlockedWork::parts() const {
  std::vector<int> parts;
  for (const auto& [part, work] : by_part_) parts.push_back(part);
  return parts;
}

absl::Status Perform(PartUpdater& updater, bool refuse_non_finite,
                     PartWork& work) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool finite, Compute(updater, work));
  // The gradients are checked one by one only if their mean is not finite,
  // since that costs as much as the sum. A finite mean proves enough: NaN and
  // infinities never cancel to a finite number. Finite gradients whose sum
  // overflows count.
  if (finite || !refuse_non_finite) return absl::OkStatus();
  for (size_t i = 0; i < work.gradients.size(); ++i) {
    if (work.gradients[i].absent) continue;
    const absl::Status found =
        updater.CheckFinite(work.part, work.gradients[i]);
    if (!found.ok()) work.refused.emplace(work.contributors[i], found);
  }
  return absl::OkStatus();
}

void ForEachShare(const PartUpdater& updater, std::vector<PartWork> work,
                  absl::FunctionRef<void(std::vector<PartWork>)> run) {
  std::vector<size_t> starts;  // elements before each, if all were float32
  // Parts differ in size by orders of magnitude: shares of equal bytes end at
  // about the same time, shares of equal numbers of parts do not.
  size_t total = 0;
  for (const PartWork& item : work) {
    starts.push_back(total / sizeof(float));
    total += updater.part_size(item.part);
  }
  ForEachBlock(total / sizeof(float) + 1, [&](size_t first, size_t count) {
    std::vector<PartWork> share;
    for (size_t i = 0; i < work.size(); ++i) {
      if (starts[i] < first || starts[i] - first >= count) continue;
      share.push_back(std::move(work[i]));
    }
    run(std::move(share));
  });
}

}  // namespace lockstep::server
