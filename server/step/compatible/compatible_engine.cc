#include "server/step/compatible/compatible_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/count_text.h"

namespace lockstep::server {

CompatibleEngine::CompatibleEngine(int replicas_to_aggregate,
                                   std::vector<CompatiblePart> parts,
                                   PartUpdater& updater,
                                   std::function<void(const Pass&)> on_pass)
    : replicas_to_aggregate_(replicas_to_aggregate),
      parts_(std::move(parts)),
      updater_(updater),
      on_pass_(std::move(on_pass)),
      accepted_(parts_.size()) {
  for (size_t part = 0; part < parts_.size(); ++part) {
    if (parts_[part].sparse_rows.has_value()) {
      SparseSum::Options options;
      options.dtype = parts_[part].dtype;
      options.input = SparseInput::kAsSent;
      accumulators_.push_back(std::make_unique<SparseAccumulator>(options));
      continue;
    }
    GradientAccumulator::Options options;
    options.dtype = parts_[part].dtype;
    // A dense part is one dimension here: servers know slices of variables, and
    // no update looks at the shape.
    options.shape = std::vector<int64_t>{
        static_cast<int64_t>(updater_.part_size(static_cast<int>(part)) /
                             ElementSize(parts_[part].dtype))};
    accumulators_.push_back(std::make_unique<GradientAccumulator>(options));
  }
}

void CompatibleEngine::Activate(int64_t global_step) {
  StopTakes();
  for (const Accumulator& accumulator : accumulators_) {
    std::visit([&](const auto& a) { a->SetGlobalStep(global_step); },
               accumulator);
  }
  MutexLock lock(mutex_);
  step_ = global_step;
  updated_parts_ = 0;
  failure_ = absl::OkStatus();
}

void CompatibleEngine::StopTakes() {
  uint64_t id = 0;
  {
    MutexLock lock(mutex_);
    take_.Forget();
    if (!taking_) return;
    taking_ = false;
    // The takes of a step are filed under its number; see TakePart().
    id = static_cast<uint64_t>(step_);
  }
  for (const Accumulator& accumulator : accumulators_) {
    std::visit([id](const auto& a) { a->Cancel(id); }, accumulator);
  }
}

int64_t CompatibleEngine::num_accumulated(int part) const {
  return std::visit([](const auto& a) { return a->num_accumulated(); },
                    accumulators_[part]);
}

absl::Status CompatibleEngine::CheckForm(const Push& push) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckPartRange(
      push.first_part, static_cast<int64_t>(push.gradients.size()),
      updater_.num_parts()));
  for (size_t i = 0; i < push.gradients.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckGradient(
        push.first_part + static_cast<int>(i), push.gradients[i]));
  }
  return absl::OkStatus();
}

absl::Status CompatibleEngine::CheckGradient(
    int part, const PartGradient& gradient) const {
  if (gradient.type != GradientType::kVariable) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient of part ", part, " is ",
                     std::string(GradientTypeName(gradient.type)),
                     "; in compatible mode send VARIABLE"));
  }
  // The accumulator of a part takes one form only.
  if (gradient.rows.has_value() != parts_[part].sparse_rows.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient of part ", part, " is ",
                     gradient.rows.has_value() ? "sparse" : "dense",
                     ", but the gradients of this part are not"));
  }
  if (gradient.rows.has_value()) return CheckRows(part, gradient);
  const size_t size = TotalSize(gradient.slices);
  if (size == updater_.part_size(part)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gradient of part ", part, " has ", size,
                   " bytes; the part has ", updater_.part_size(part)));
}

// Finds the errors that only an update would notice, when other gradients have
// been added already. The accumulator checks the rest.
absl::Status CompatibleEngine::CheckRows(int part,
                                         const PartGradient& gradient) const {
  const int64_t rows = *parts_[part].sparse_rows;
  for (const int64_t index : gradient.rows->indices) {
    if (index >= 0 && index < rows) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("gradient of part ", part, ": index is ", index,
                     ", must be at least 0 and less than ", rows));
  }
  const absl::Span<const int64_t> shape = gradient.rows->shape;
  // The shape comes from a message: its product may overflow.
  int64_t width = 1;
  for (size_t i = 1; i < shape.size(); ++i) {
    if (shape[i] < 0 || __builtin_mul_overflow(width, shape[i], &width)) {
      width = -1;
      break;
    }
  }
  const auto elements = static_cast<int64_t>(updater_.part_size(part) /
                                             ElementSize(parts_[part].dtype));
  if (width >= 0 && rows > 0 && width == elements / rows) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("gradient of part ", part, " has rows of ", width,
                   " elements; the part has ", rows, " rows of ",
                   rows > 0 ? elements / rows : 0));
}

bool CompatibleEngine::IsDuplicate(int part, const Pass& pass) {
  MutexLock lock(mutex_);
  Accepted& newest = accepted_[part][pass.worker];
  const bool repeated =
      pass.incarnation < newest.incarnation ||
      (pass.incarnation == newest.incarnation && pass.pass <= newest.pass);
  // Before the gradient is added: a repeated call that runs at the same time
  // must not add it again.
  if (!repeated) newest = {pass.incarnation, pass.pass};
  return repeated;
}

void CompatibleEngine::Forget(int part, const Pass& pass) {
  MutexLock lock(mutex_);
  // The gradient did not count, so a repetition of the same push is no
  // duplicate.
  Accepted& newest = accepted_[part][pass.worker];
  // A newer pass may have come since IsDuplicate(): its record stays.
  if (newest.incarnation != pass.incarnation || newest.pass != pass.pass) {
    return;
  }
  newest.pass = pass.pass - 1;
}

absl::StatusOr<ShardAnswers> CompatibleEngine::AddPush(uint64_t ticket,
                                                       Push push) {
  LOCKSTEP_RETURN_IF_ERROR(CheckForm(push));
  ShardAnswers answers;
  PushAnswer answer{ticket, {}, 0, absl::OkStatus()};
  for (size_t i = 0; i < push.gradients.size(); ++i) {
    const absl::StatusOr<PushOutcome> outcome =
        AddPart(push.first_part + static_cast<int>(i), push.pass,
                push.gradients[i], answers);
    if (!outcome.ok()) {
      // Parts before this one have counted, and may have completed a take that
      // waits for its answer.
      answer.status = outcome.status();
      break;
    }
    answer.outcomes.push_back(*outcome);
  }
  if (Arrive(push.pass, push.first_part, answer.outcomes.size()) && on_pass_) {
    on_pass_(push.pass);
  }
  answer.server_step = step();
  answers.pushes.push_back(std::move(answer));
  return answers;
}

bool CompatibleEngine::Arrive(const Pass& pass, int first, size_t count) {
  MutexLock lock(mutex_);
  Arrived& arrived = arrived_[pass.worker];
  const auto newest = std::pair(arrived.incarnation, arrived.pass);
  const auto number = std::pair(pass.incarnation, pass.pass);
  if (number < newest) return false;
  if (number > newest) arrived = {pass.incarnation, pass.pass};
  for (size_t i = 0; i < count; ++i) {
    arrived.parts.insert(first + static_cast<int>(i));
  }
  return arrived.parts.size() == parts_.size();
}

absl::StatusOr<PushOutcome> CompatibleEngine::AddPart(
    int part, const Pass& pass, const PartGradient& gradient,
    ShardAnswers& answers) {
  if (IsDuplicate(part, pass)) return PushOutcome::kDuplicate;
  std::vector<std::byte> scratch;
  const absl::Span<const std::byte> values = Contiguous(gradient, scratch);
  const DType dtype = parts_[part].dtype;
  const auto add = [&](auto& accumulator,
                       const auto& view) -> absl::StatusOr<PushOutcome> {
    auto applied = accumulator.Apply(pass.local_step, view);
    if (!applied.ok() || applied->outcome == ApplyOutcome::kStale) {
      Forget(part, pass);
      LOCKSTEP_RETURN_IF_ERROR(applied.status());
      return PushOutcome::kStale;
    }
    // A gradient may complete a take that waits, and several in a row.
    Update(part, applied->completed, answers);
    return PushOutcome::kAccepted;
  };
  if (gradient.rows.has_value()) {
    return add(*std::get<1>(accumulators_[part]),
               SparseGradientView{dtype, gradient.rows->indices, 1,
                                  gradient.rows->shape, values, std::nullopt});
  }
  const auto count = static_cast<int64_t>(values.size() / ElementSize(dtype));
  return add(*std::get<0>(accumulators_[part]),
             DenseGradientView{dtype, absl::MakeConstSpan(&count, 1), values});
}

absl::Status CompatibleEngine::UpdatePart(int part, const DenseGradient& mean) {
  const PartGradient gradient{{{mean.values.data(), mean.values.size()}},
                              nullptr};
  return updater_.Update(part, step(), absl::MakeConstSpan(&gradient, 1))
      .status();
}

absl::Status CompatibleEngine::UpdatePart(int part,
                                          const SparseGradient& mean) {
  return updater_.UpdateSparse(part, step(), mean);
}

template <typename Completed>
void CompatibleEngine::Update(int part, const std::vector<Completed>& completed,
                              ShardAnswers& answers) {
  for (const Completed& take : completed) {
    {
      MutexLock lock(mutex_);
      changing_ = true;
    }
    const absl::Status status = UpdatePart(part, take.gradient);
    MutexLock lock(mutex_);
    ++updated_parts_;
    // The first failure stays.
    failure_.Update(status);
    AnswerTake(answers);
  }
}

absl::StatusOr<ShardAnswers> CompatibleEngine::Take(uint64_t ticket,
                                                    int64_t step) {
  ShardAnswers answers;
  bool begin = false;
  {
    MutexLock lock(mutex_);
    // The take of the next step says that ps task 0 has committed this one; the
    // chief's commit may still be on its way.
    if (step == step_ + 1 && all_updated()) {
      LOCKSTEP_RETURN_IF_ERROR(CommitLocked(step));
    }
    if (step != step_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "take of step ", step, " from a server at step ", step_));
    }
    take_.File(ticket, answers);
    // Accumulators keep their takes when the chief's wait ends, so a step files
    // them once.
    begin = !taking_;
    taking_ = true;
    AnswerTake(answers);  // there may be no part
    if (!take_.is_filed()) return answers;
  }
  if (!begin) {
    // A change of settings may have changed the number of gradients since the
    // first take.
    for (int part = 0; part < static_cast<int>(parts_.size()); ++part) {
      RequirePart(part, step, answers);
    }
    return answers;
  }
  for (int part = 0; part < static_cast<int>(parts_.size()); ++part) {
    if (!parts_[part].sparse_rows.has_value()) continue;
    // For all parts before the first take: a take may complete at once and
    // update its part.
    LOCKSTEP_RETURN_IF_ERROR(updater_.BeginSparse(part));
  }
  for (int part = 0; part < static_cast<int>(parts_.size()); ++part) {
    LOCKSTEP_RETURN_IF_ERROR(TakePart(part, step, answers));
  }
  return answers;
}

absl::Status CompatibleEngine::TakePart(int part, int64_t step,
                                        ShardAnswers& answers) {
  return std::visit(
      [&](const auto& accumulator) -> absl::Status {
        LOCKSTEP_ASSIGN_OR_RETURN(auto completed,
                                  accumulator->Take(static_cast<uint64_t>(step),
                                                    replicas_to_aggregate_));
        Update(part, completed, answers);
        return absl::OkStatus();
      },
      accumulators_[part]);
}

void CompatibleEngine::RequirePart(int part, int64_t step,
                                   ShardAnswers& answers) {
  std::visit(
      [&](const auto& accumulator) {
        auto completed = accumulator->Require(static_cast<uint64_t>(step),
                                              replicas_to_aggregate_);
        Update(part, completed, answers);
      },
      accumulators_[part]);
}

void CompatibleEngine::CancelTake(uint64_t ticket) {
  // The accumulators keep their takes: the chief will ask again.
  MutexLock lock(mutex_);
  take_.Cancel(ticket);
}

void CompatibleEngine::AnswerTake(ShardAnswers& answers) {
  if (!all_updated() && failure_.ok()) return;
  take_.Answer({.prepared = failure_.ok(), .status = failure_}, answers);
}

absl::Status CompatibleEngine::CommitLocked(int64_t step) {
  LOCKSTEP_RETURN_IF_ERROR(updater_.Commit(step));
  step_ = step;
  taking_ = false;
  updated_parts_ = 0;
  changing_ = false;
  return absl::OkStatus();
}

absl::Status CompatibleEngine::CheckCommitLocked(int64_t step) const {
  if (step == step_ || (step == step_ + 1 && all_updated())) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "commit of step ", step, " on a server at step ", step_, " with ",
      updated_parts_, " of ", updater_.num_parts(), " parts updated"));
}

absl::Status CompatibleEngine::CheckCommit(int64_t step, int64_t) const {
  MutexLock lock(mutex_);
  return CheckCommitLocked(step);
}

absl::StatusOr<ShardAnswers> CompatibleEngine::Commit(int64_t step, int64_t) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckCommitLocked(step));
  if (step == step_) return ShardAnswers();
  LOCKSTEP_RETURN_IF_ERROR(CommitLocked(step));
  return ShardAnswers();
}

int64_t CompatibleEngine::step() const {
  MutexLock lock(mutex_);
  return step_;
}

absl::Status CompatibleEngine::CheckWhole(int64_t step) const {
  MutexLock lock(mutex_);
  if (step == step_ && !changing_) return absl::OkStatus();
  if (step != step_) {
    return absl::DataLossError(absl::StrCat(
        "the values of step ", step, " are gone: the server is at step ", step_,
        ", which is the step to ask for"));
  }
  return absl::DataLossError(absl::StrCat(
      "the values of step ", step, " are gone: step ", step + 1,
      " changes parts in place, and has updated ", updated_parts_, " of ",
      updater_.num_parts(), "; ask again once it is committed"));
}

std::string CompatibleEngine::WaitsFor() const {
  const int64_t needed = replicas_to_aggregate_;
  int64_t fewest = needed;
  int open = 0;
  const int64_t at = step();
  for (const Accumulator& accumulator : accumulators_) {
    std::visit(
        [&](const auto& a) {
          // The take of this part is complete: its accumulator is at the next
          // step.
          if (a->step() > at) return;
          ++open;
          fewest = std::min(fewest, a->num_accumulated());
        },
        accumulator);
  }
  if (open == 0 || fewest >= needed) return "";
  return absl::StrCat(needed - fewest, " of ",
                      CountText(static_cast<int64_t>(needed), "gradient"),
                      " of ", CountText(open, "part"));
}

}  // namespace lockstep::server
