#include "tests/benchmark/layered_source.h"

#include <algorithm>
#include <cstring>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {
namespace {

double Milliseconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e6;
}

}  // namespace

LayeredSource::LayeredSource(const OverlapOptions& options, int worker,
                             int workers, const worker::ParameterMemory& memory)
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

absl::Status LayeredSource::Begin(int64_t index, worker::GradientPass& pass) {
  BeginStep(NowNanoseconds());
  oracle_.AdvanceTo(index);
  step_ = StepAt(options_, index);
  compute_ = absl::ZeroDuration();
  if (step_.phase != OverlapPhase::kTransfer) {
    compute_ = absl::Milliseconds(TransferMs(step_.round) *
                                  options_.balances[step_.balance]);
  }
  const bool overlaps = step_.phase == OverlapPhase::kOverlapped;
  const absl::Duration time =
      overlaps ? compute_ * options_.forward_share : absl::ZeroDuration();
  for (int layer = 0; layer < options_.layers; ++layer) {
    LOCKSTEP_RETURN_IF_ERROR(pass.NeedValues(layer, 1));
    LOCKSTEP_RETURN_IF_ERROR(CheckLayer(layer));
    Queue(time / options_.layers);
  }
  return absl::OkStatus();
}

absl::StatusOr<worker::GradientResult> LayeredSource::Finish(
    worker::GradientPass& pass) {
  const bool overlaps = step_.phase == OverlapPhase::kOverlapped;
  const absl::Duration forward = compute_ * options_.forward_share;
  const int64_t began = NowNanoseconds();
  if (!overlaps) Queue(forward);
  for (int layer = options_.layers - 1; layer >= 0; --layer) {
    LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
    Queue((compute_ - forward) / options_.layers);
    WaitForDevice();
    LOCKSTEP_RETURN_IF_ERROR(CheckLayer(layer));
    if (overlaps) pass.GradientReady(layer);
  }
  compute_ms_ = Milliseconds(NowNanoseconds() - began);
  return worker::GradientResult{0, 1};
}

void LayeredSource::Queue(absl::Duration time) {
  device_free_ =
      std::max(device_free_, NowNanoseconds()) + absl::ToInt64Nanoseconds(time);
  if (options_.spin) WaitForDevice();
}

void LayeredSource::WaitForDevice() const {
  while (options_.spin && NowNanoseconds() < device_free_) {
  }
  absl::SleepFor(absl::Nanoseconds(device_free_ - NowNanoseconds()));
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
