#ifndef LOCKSTEP_TESTS_UNIT_SERVER_STEP_FAKE_PART_UPDATER_H_
#define LOCKSTEP_TESTS_UNIT_SERVER_STEP_FAKE_PART_UPDATER_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "server/step/engine.h"

namespace lockstep::server {

// A gradient of one float.
inline PartGradient GradientOf(float value) {
  auto owner = std::make_shared<float>(value);
  const auto* bytes = reinterpret_cast<const std::byte*>(owner.get());
  return {{{bytes, sizeof(float)}}, owner};
}

// A bfloat16 is the upper half of its float.
inline float ValueOf(const PartGradient& gradient) {
  float value = 0;
  auto* to = reinterpret_cast<std::byte*>(&value);
  if (gradient.type == GradientType::kBFloat16) to += 2;
  for (const ByteSlice& slice : gradient.slices) {
    std::memcpy(to, slice.data, slice.size);
    to += slice.size;
  }
  return value;
}

// The same as a bfloat16, cut off.
inline PartGradient BFloat16GradientOf(float value) {
  PartGradient gradient = GradientOf(value);
  gradient.slices = {{gradient.slices[0].data + 2, 2}};
  gradient.type = GradientType::kBFloat16;
  return gradient;
}

// The same gradient for `num_parts` parts.
inline Push PushOf(const Pass& pass, int64_t attempt, int first_part,
                   int num_parts, float value) {
  Push push{pass, attempt, first_part, {}, false};
  for (int i = 0; i < num_parts; ++i) {
    push.gradients.push_back(GradientOf(value));
  }
  return push;
}

// FakePartUpdater has parts of one float and does no arithmetic: it notes
// which gradients every update was made from, and in which order.
//
// Threads: safe to share, but for the hooks, which are set before use.
class FakePartUpdater : public PartUpdater {
 public:
  struct Update_ {
    int part = 0;
    int64_t step = 0;
    std::vector<float> gradients;  // those that are not absent
    int absent = 0;

    bool operator==(const Update_&) const = default;
  };

  explicit FakePartUpdater(int num_parts)
      : num_parts_(num_parts),
        running_(num_parts),
        next_(num_parts),
        means_(num_parts) {
    for (int i = 0; i < num_parts; ++i) {
      next_values_.push_back(std::make_shared<float>(0));
    }
  }

  // Called by each update, which returns its result. No lock is held.
  std::function<absl::Status(int part, int64_t step)> on_update;
  absl::Status on_mark_prepared;
  absl::Status on_apply_mean;
  // Called by each ApplyMean(), with no lock held; may be null.
  std::function<void()> while_mean_is_applied;
  // By part: the gradients in the values that are committed as `step`.
  std::function<void(int64_t step, const std::vector<std::vector<float>>&)>
      on_commit;

  int num_parts() const override { return num_parts_; }
  size_t part_size(int) const override { return sizeof(float); }
  absl::StatusOr<size_t> GradientSize(int, GradientType type) const override {
    return GradientElementSize(DType::kFloat32, type);
  }

  bool ClaimNext(int part) override {
    MutexLock lock(mutex_);
    if (next_values_[part].use_count() <= 1) return true;
    return false;
  }
  // The value is the sum of the gradients that the update was made from.
  LentBytes LendNext(int part) override {
    MutexLock lock(mutex_);
    const auto* bytes =
        reinterpret_cast<const std::byte*>(next_values_[part].get());
    return {{bytes, sizeof(float)}, next_values_[part]};
  }

  absl::StatusOr<bool> Update(
      int part, int64_t step,
      absl::Span<const PartGradient> gradients) override {
    Update_ update{part, step, {}};
    for (const PartGradient& gradient : gradients) {
      if (gradient.absent) ++update.absent;
      if (!gradient.absent) update.gradients.push_back(ValueOf(gradient));
    }
    {
      MutexLock lock(mutex_);
      if (running_[part]) overlapped_ = true;
      running_[part] = true;
      updates_.push_back(update);
    }
    absl::Status status;
    if (on_update) status = on_update(part, step);
    MutexLock lock(mutex_);
    running_[part] = false;
    if (!status.ok()) return status;
    next_[part] = update.gradients;
    float sum = 0;
    for (float gradient : update.gradients) sum += gradient;
    *next_values_[part] = sum;
    return std::isfinite(sum);
  }

  // The mean is that of the gradients.
  absl::StatusOr<Measured> MeasureMean(
      int part, absl::Span<const PartGradient> gradients) override {
    float mean = 0;
    for (const PartGradient& gradient : gradients) mean += ValueOf(gradient);
    mean /= static_cast<float>(gradients.size());
    MutexLock lock(mutex_);
    means_[part] = mean;
    return Measured{std::isfinite(mean), double{mean} * mean};
  }

  // Noted as an update from the mean and the norm.
  absl::Status ApplyMean(int part, int64_t step, double norm) override {
    if (while_mean_is_applied) while_mean_is_applied();
    if (!on_apply_mean.ok()) return on_apply_mean;
    MutexLock lock(mutex_);
    updates_.push_back(
        {part, step, {means_[part], static_cast<float>(norm)}, 0});
    next_[part] = updates_.back().gradients;
    return absl::OkStatus();
  }

  PartGradient LendMean(int part) override {
    MutexLock lock(mutex_);
    return GradientOf(means_[part]);
  }
  absl::StatusOr<double> KeepMean(int part, PartGradient mean) override {
    MutexLock lock(mutex_);
    means_[part] = ValueOf(mean);
    return double{means_[part]} * means_[part];
  }

  absl::Status CheckFinite(int part,
                           const PartGradient& gradient) const override {
    if (std::isfinite(ValueOf(gradient))) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("gradient of part ", part, " holds NaN or an infinity"));
  }

  absl::Status MarkPrepared(int64_t step, int64_t attempt) override {
    if (!on_mark_prepared.ok()) return on_mark_prepared;
    MutexLock lock(mutex_);
    log_.push_back(absl::StrCat("prepared ", step, " attempt ", attempt));
    return absl::OkStatus();
  }
  void DropPrepared() override {
    MutexLock lock(mutex_);
    log_.push_back("dropped");
  }
  absl::Status Commit(int64_t step) override {
    MutexLock lock(mutex_);
    log_.push_back(absl::StrCat("committed ", step));
    committed_ = next_;
    if (on_commit) on_commit(step, committed_);
    return absl::OkStatus();
  }

  std::vector<Update_> updates() const {
    MutexLock lock(mutex_);
    return updates_;
  }
  // Whether two updates of one part ever ran at the same time.
  bool overlapped() const {
    MutexLock lock(mutex_);
    return overlapped_;
  }
  // The calls that concern whole steps.
  std::vector<std::string> log() const {
    MutexLock lock(mutex_);
    return log_;
  }
  // By part: the gradients in the value of the committed step.
  std::vector<std::vector<float>> committed() const {
    MutexLock lock(mutex_);
    return committed_;
  }

 private:
  const int num_parts_;

  mutable Mutex mutex_;
  std::vector<bool> running_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<float>> next_ ABSL_GUARDED_BY(mutex_);
  std::vector<float> means_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<float>> next_values_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<float>> committed_ ABSL_GUARDED_BY(mutex_);
  std::vector<Update_> updates_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);
  bool overlapped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_TESTS_UNIT_SERVER_STEP_FAKE_PART_UPDATER_H_
