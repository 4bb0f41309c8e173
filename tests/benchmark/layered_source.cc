#include "tests/benchmark/layered_source.h"

#include <algorithm>
#include <cstring>

#include "absl/time/clock.h"
#include "common/status_macros.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {
namespace {

double Milliseconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e6;
}

}  // namespace

LayeredSource::LayeredSource(const OverlapOptions& options, int worker,
                             int workers, const ParameterMemory& memory)
    : options_(options), memory_(memory), oracle_(workers) {
  for (int layer = 0; layer < options_.layers; ++layer) {
    const absl::Span<std::byte> gradient = memory_.gradient(layer);
    std::fill_n(reinterpret_cast<float*>(gradient.data()),
                gradient.size() / sizeof(float), GradientOf(worker));
  }
}

void LayeredSource::BeginStep(int64_t now) {
  if (step_began_ != 0) {
    samples_.push_back({Milliseconds(now - step_began_), compute_ms_});
  }
  step_began_ = now;
}

double LayeredSource::TransferMs(int round) const {
  std::vector<double> values;
  for (size_t i = 0; i < samples_.size(); ++i) {
    const OverlapStep step = StepAt(options_, static_cast<int64_t>(i));
    if (step.round == round && step.phase == OverlapPhase::kTransfer) {
      values.push_back(samples_[i].step);
    }
  }
  return Median(values);
}

absl::StatusOr<GradientResult> LayeredSource::Compute(int64_t index,
                                                      const PassHooks& hooks) {
  const int64_t began = NowNanoseconds();
  BeginStep(began);
  oracle_.AdvanceTo(index);
  for (int layer = 0; layer < options_.layers; ++layer) {
    LOCKSTEP_RETURN_IF_ERROR(CheckLayer(layer));
  }
  LOCKSTEP_RETURN_IF_ERROR(Pass(StepAt(options_, index), hooks));
  compute_ms_ = Milliseconds(NowNanoseconds() - began);
  return GradientResult{0, 1};
}

absl::Status LayeredSource::Pass(const OverlapStep& step,
                                 const PassHooks& hooks) const {
  if (step.phase == OverlapPhase::kTransfer) return absl::OkStatus();
  const absl::Duration compute = absl::Milliseconds(
      TransferMs(step.round) * options_.balances[step.balance]);
  Take(compute * options_.forward_share);
  for (int layer = options_.layers - 1; layer >= 0; --layer) {
    LOCKSTEP_RETURN_IF_ERROR(hooks.CheckWanted());
    Take(compute * (1 - options_.forward_share) / options_.layers);
    LOCKSTEP_RETURN_IF_ERROR(CheckLayer(layer));
    if (step.phase == OverlapPhase::kOverlapped) hooks.Report(layer);
  }
  return absl::OkStatus();
}

void LayeredSource::Take(absl::Duration time) const {
  if (!options_.spin) {
    absl::SleepFor(time);
    return;
  }
  const int64_t end = NowNanoseconds() + absl::ToInt64Nanoseconds(time);
  while (NowNanoseconds() < end) {
  }
}

absl::Status LayeredSource::CheckLayer(int layer) const {
  const absl::Span<std::byte> value = memory_.value(layer);
  for (const std::byte* at :
       {value.data(), value.data() + value.size() - sizeof(float)}) {
    float element;
    std::memcpy(&element, at, sizeof(element));
    LOCKSTEP_RETURN_IF_ERROR(oracle_.Check(element));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::benchmark
