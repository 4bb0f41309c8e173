#ifndef LOCKSTEP_TESTS_UNIT_COMMON_CHECKPOINT_SAMPLE_CHECKPOINT_H_
#define LOCKSTEP_TESTS_UNIT_COMMON_CHECKPOINT_SAMPLE_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

// A small checkpoint with known numbers, for the tests of this folder.
namespace lockstep {

inline const std::vector<float> kSampleWeights = {0, 1, 2, 3, 4, 5};
inline const std::vector<float> kSampleMomentum = {0.5f, 1.5f, 2.5f,
                                                   3.5f, 4.5f, 5.5f};

inline absl::Span<const char> BytesOf(absl::Span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(float)};
}

inline CheckpointTensors SampleTensors() {
  CheckpointTensors tensors;
  tensors.model = {{"hidden1/weights", TensorType::kF32, {2, 3}}};
  tensors.optimizer = {{"hidden1/weights/Momentum", TensorType::kF32, {2, 3}},
                       {"global_step", TensorType::kI64, {}}};
  return tensors;
}

inline Manifest SampleManifest() {
  Manifest manifest;
  manifest.job_name = "mnist";
  manifest.job_id = "run-1";
  manifest.seed = 7;
  manifest.mode = "strict";
  manifest.num_workers = 3;
  manifest.saved_at_unix_ms = 1'700'000'000'000;
  manifest.metrics = {{"loss", 0.25}};
  return manifest;
}

inline void FillSample(CheckpointWriter& writer, int64_t step) {
  ASSERT_OK(
      writer.model().WriteAt("hidden1/weights", 0, BytesOf(kSampleWeights)));
  ASSERT_OK(writer.optimizer().WriteAt("hidden1/weights/Momentum", 0,
                                       BytesOf(kSampleMomentum)));
  ASSERT_OK(writer.optimizer().WriteInt64("global_step", step));
}

// `directory` must exist; the checkpoint of `step` must not.
inline void WriteSample(const std::string& directory, int64_t step) {
  auto writer = CheckpointWriter::Create(directory, step, SampleTensors());
  ASSERT_OK(writer);
  ASSERT_NO_FATAL_FAILURE(FillSample(**writer, step));
  ASSERT_OK((*writer)->Commit(SampleManifest()));
}

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_COMMON_CHECKPOINT_SAMPLE_CHECKPOINT_H_
