#include "server/step/compatible_shard.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// The elements of a gradient in one stretch: where they lie, if in one slice,
// else gathered in `scratch`.
absl::Span<const std::byte> Contiguous(const PartGradient& gradient,
                                       std::vector<std::byte>& scratch) {
  if (gradient.slices.size() == 1) {
    return {gradient.slices[0].data, gradient.slices[0].size};
  }
  for (const ByteSlice& slice : gradient.slices) {
    scratch.insert(scratch.end(), slice.data, slice.data + slice.size);
  }
  return scratch;
}

}  // namespace

CompatibleShard::CompatibleShard(int replicas_to_aggregate,
                                 std::vector<DType> dtypes,
                                 PartUpdater& updater)
    : replicas_to_aggregate_(replicas_to_aggregate),
      dtypes_(std::move(dtypes)),
      updater_(updater),
      accepted_(dtypes_.size()) {
  for (size_t part = 0; part < dtypes_.size(); ++part) {
    GradientAccumulator::Options options;
    options.dtype = dtypes_[part];
    options.shape = std::vector<int64_t>{
        static_cast<int64_t>(updater_.part_size(static_cast<int>(part)) /
                             ElementSize(dtypes_[part]))};
    accumulators_.push_back(std::make_unique<GradientAccumulator>(options));
  }
}

void CompatibleShard::Activate(int64_t global_step) {
  for (auto& accumulator : accumulators_) {
    accumulator->SetGlobalStep(global_step);
  }
  MutexLock lock(mutex_);
  step_ = global_step;
}

absl::Status CompatibleShard::CheckForm(const Push& push) const {
  const int64_t end =
      push.first_part + static_cast<int64_t>(push.gradients.size());
  if (push.first_part < 0 || push.gradients.empty() ||
      end > updater_.num_parts()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parts ", push.first_part, " to ", end - 1, " are not all among the ",
        updater_.num_parts(), " parts of this server"));
  }
  for (size_t i = 0; i < push.gradients.size(); ++i) {
    const int part = push.first_part + static_cast<int>(i);
    if (push.gradients[i].type != GradientType::kVariable) {
      return absl::InvalidArgumentError(
          absl::StrCat("gradient of part ", part, " is ",
                       std::string(GradientTypeName(push.gradients[i].type)),
                       "; in compatible mode send VARIABLE"));
    }
    const size_t size = TotalSize(push.gradients[i].slices);
    if (size != updater_.part_size(part)) {
      return absl::InvalidArgumentError(
          absl::StrCat("gradient of part ", part, " has ", size,
                       " bytes; the part has ", updater_.part_size(part)));
    }
  }
  return absl::OkStatus();
}

bool CompatibleShard::IsDuplicate(int part, const Pass& pass) {
  MutexLock lock(mutex_);
  Accepted& newest = accepted_[part][pass.worker];
  const bool repeated =
      pass.incarnation < newest.incarnation ||
      (pass.incarnation == newest.incarnation && pass.pass <= newest.pass);
  if (!repeated) newest = {pass.incarnation, pass.pass};
  return repeated;
}

void CompatibleShard::Forget(int part, const Pass& pass) {
  MutexLock lock(mutex_);
  accepted_[part][pass.worker] = {pass.incarnation, pass.pass - 1};
}

absl::StatusOr<ShardAnswers> CompatibleShard::AddPush(uint64_t ticket,
                                                      Push push) {
  LOCKSTEP_RETURN_IF_ERROR(CheckForm(push));
  ShardAnswers answers;
  PushAnswer answer{ticket, {}, 0, absl::OkStatus()};
  for (size_t i = 0; i < push.gradients.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(PushOutcome outcome,
                              AddPart(push.first_part + static_cast<int>(i),
                                      push.pass, push.gradients[i], answers));
    answer.outcomes.push_back(outcome);
  }
  answer.server_step = step();
  answers.pushes.push_back(std::move(answer));
  return answers;
}

absl::StatusOr<PushOutcome> CompatibleShard::AddPart(
    int part, const Pass& pass, const PartGradient& gradient,
    ShardAnswers& answers) {
  if (IsDuplicate(part, pass)) return PushOutcome::kDuplicate;
  std::vector<std::byte> scratch;
  const absl::Span<const std::byte> values = Contiguous(gradient, scratch);
  const int64_t count =
      static_cast<int64_t>(values.size() / ElementSize(dtypes_[part]));
  absl::StatusOr<GradientAccumulator::Applied> applied =
      accumulators_[part]->Apply(
          pass.local_step,
          {dtypes_[part], absl::MakeConstSpan(&count, 1), values});
  if (!applied.ok() || applied->outcome == ApplyOutcome::kStale) {
    Forget(part, pass);
    LOCKSTEP_RETURN_IF_ERROR(applied.status());
    return PushOutcome::kStale;
  }
  Update(part, std::move(applied->completed), answers);
  return PushOutcome::kAccepted;
}

void CompatibleShard::Update(
    int part, std::vector<GradientAccumulator::Completed> completed,
    ShardAnswers& answers) {
  for (GradientAccumulator::Completed& take : completed) {
    const std::vector<std::byte>& mean = take.gradient.values;
    const PartGradient gradient{{{mean.data(), mean.size()}}, nullptr};
    const absl::Status status =
        updater_.Update(part, step(), absl::MakeConstSpan(&gradient, 1));
    MutexLock lock(mutex_);
    ++updated_parts_;
    failure_.Update(status);
    if (take_.has_value() && (all_updated() || !failure_.ok())) {
      answers.takes.push_back({*take_, failure_.ok(), 0, failure_});
      take_.reset();
    }
  }
}

absl::StatusOr<ShardAnswers> CompatibleShard::Take(uint64_t ticket,
                                                   int64_t step) {
  ShardAnswers answers;
  bool begin = false;
  {
    MutexLock lock(mutex_);
    if (step == step_ + 1 && all_updated()) {
      LOCKSTEP_RETURN_IF_ERROR(CommitLocked(step));
    }
    if (step != step_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "take of step ", step, " from a server at step ", step_));
    }
    if (take_.has_value()) {
      answers.takes.push_back({*take_, false, 0, absl::OkStatus()});
      take_.reset();
    }
    begin = !taking_;
    taking_ = true;
    if (all_updated() || !failure_.ok()) {  // or there is no part
      answers.takes.push_back({ticket, failure_.ok(), 0, failure_});
      return answers;
    }
    take_ = ticket;
  }
  if (!begin) return answers;
  for (size_t part = 0; part < accumulators_.size(); ++part) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        std::vector<GradientAccumulator::Completed> completed,
        accumulators_[part]->Take(static_cast<uint64_t>(step),
                                  replicas_to_aggregate_));
    Update(static_cast<int>(part), std::move(completed), answers);
  }
  return answers;
}

void CompatibleShard::CancelTake(uint64_t ticket) {
  // The accumulators keep their takes: the chief will ask again.
  MutexLock lock(mutex_);
  if (take_ == ticket) take_.reset();
}

absl::Status CompatibleShard::CommitLocked(int64_t step) {
  LOCKSTEP_RETURN_IF_ERROR(updater_.Commit(step));
  step_ = step;
  taking_ = false;
  updated_parts_ = 0;
  return absl::OkStatus();
}

absl::Status CompatibleShard::CheckCommitLocked(int64_t step) const {
  if (step == step_ || (step == step_ + 1 && all_updated())) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "commit of step ", step, " on a server at step ", step_, " with ",
      updated_parts_, " of ", updater_.num_parts(), " parts updated"));
}

absl::Status CompatibleShard::CheckCommit(int64_t step, int64_t) const {
  MutexLock lock(mutex_);
  return CheckCommitLocked(step);
}

absl::StatusOr<ShardAnswers> CompatibleShard::Commit(int64_t step, int64_t) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckCommitLocked(step));
  if (step == step_) return ShardAnswers();
  LOCKSTEP_RETURN_IF_ERROR(CommitLocked(step));
  return ShardAnswers();
}

int64_t CompatibleShard::step() const {
  MutexLock lock(mutex_);
  return step_;
}

std::string CompatibleShard::WaitsFor() const {
  int64_t fewest = replicas_to_aggregate_;
  int open = 0;
  const int64_t at = step();
  for (const auto& accumulator : accumulators_) {
    if (accumulator->step() > at) continue;
    ++open;
    fewest = std::min(fewest, accumulator->num_accumulated());
  }
  if (open == 0 || fewest >= replicas_to_aggregate_) return "";
  return absl::StrCat(replicas_to_aggregate_ - fewest, " of ",
                      replicas_to_aggregate_, " gradients of ", open, " parts");
}

}  // namespace lockstep
