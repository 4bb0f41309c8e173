#ifndef LOCKSTEP_TESTS_BENCHMARK_LAYERED_SOURCE_H_
#define LOCKSTEP_TESTS_BENCHMARK_LAYERED_SOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/overlap_schedule.h"
#include "worker/loop/gradient_source.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::benchmark {

// LayeredSource takes time layer by layer and computes nothing: each gradient
// is in memory from the start. Its variables are the layers. It reads the first
// and last element of a layer's value while a real layer might read it.
//
// It models a device that processes its queue of layers: a layer begins when
// the one before has ended and its value has arrived. The thread waits for the
// end of a layer before it sends its gradient.
//
// Borrows: the memory.
class LayeredSource final : public worker::GradientSource {
 public:
  LayeredSource(const OverlapOptions& options, int worker, int workers,
                const worker::ParameterMemory& memory);

  bool MayBeginEarly() const override { return true; }

  //   kInternal  a value is not what the step's gradients make of it
  absl::Status Begin(int64_t index, worker::GradientPass& pass) override;
  absl::StatusOr<worker::GradientResult> Finish(
      worker::GradientPass& pass) override;

  // One sample for each step that has ended.
  const std::vector<OverlapSample>& samples() const { return samples_; }

 private:
  // Ends the previous step.
  void BeginStep(int64_t now);
  // Median time of the round's steps without compute.
  double TransferMs(int round) const;
  // Gives the device a layer.
  void Queue(absl::Duration time);
  void WaitForDevice() const;
  absl::Status CheckLayer(int layer) const;

  const OverlapOptions options_;
  const worker::ParameterMemory& memory_;
  MomentumOracle oracle_;
  int64_t step_began_ = 0;   // nanoseconds; 0 before the first step
  OverlapStep step_;         // at hand
  absl::Duration compute_;   // of that step, both halves
  double compute_ms_ = 0;    // as measured
  int64_t device_free_ = 0;  // from when on; nanoseconds
  std::vector<OverlapSample> samples_;
};

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_LAYERED_SOURCE_H_
