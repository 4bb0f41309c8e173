#ifndef LOCKSTEP_TESTS_UNIT_WORKER_SCORING_SOFTMAX_CHECKPOINT_H_
#define LOCKSTEP_TESTS_UNIT_WORKER_SCORING_SOFTMAX_CHECKPOINT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/checkpoint/checkpoint_store.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {

// Writes a checkpoint of a model of kind softmax that takes the brightest of
// the first pixels for the class.
inline void WriteSoftmaxCheckpoint(const std::string& directory, int64_t step,
                                   int64_t pixels, int64_t classes) {
  std::vector<float> weights(static_cast<size_t>(pixels * classes));
  for (int64_t i = 0; i < std::min(pixels, classes); ++i) {
    weights[static_cast<size_t>(i * classes + i)] = 9;
  }
  std::vector<float> bias(static_cast<size_t>(classes));
  const CheckpointStore store(directory);
  auto writer = store.Begin(
      step, {{{"softmax/weights", TensorType::kF32, {pixels, classes}},
              {"softmax/bias", TensorType::kF32, {classes}}},
             {{"global_step", TensorType::kI64, {}}}});
  ASSERT_OK(writer);
  for (const auto& [name, values] :
       {std::pair{"softmax/weights", &weights}, {"softmax/bias", &bias}}) {
    ASSERT_OK((*writer)->model().WriteAt(
        name, 0,
        absl::MakeConstSpan(reinterpret_cast<const char*>(values->data()),
                            values->size() * sizeof(float))));
  }
  ASSERT_OK((*writer)->optimizer().WriteInt64("global_step", step));
  Manifest manifest;
  manifest.job_name = "job";
  manifest.global_step = step;
  manifest.mode = "strict";
  manifest.num_workers = 1;
  ASSERT_OK((*writer)->Commit(manifest));
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_WORKER_SCORING_SOFTMAX_CHECKPOINT_H_
