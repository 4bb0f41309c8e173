// Writes a checkpoint with known numbers below the given directory, for
// safetensors_reads_checkpoint.py, which expects the same numbers: element i of
// a tensor is start + i / 4.

#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_store.h"

namespace lockstep {
namespace {

constexpr int64_t kStep = 1500;
// Small, so that tensors have several pieces.
constexpr uint64_t kPartBytes = 20;

CheckpointTensors Tensors() {
  CheckpointTensors tensors;
  tensors.model = {{"hidden1/weights", TensorType::kF32, {3, 5}},
                   {"hidden1/biases", TensorType::kF32, {5}},
                   {"wide", TensorType::kF64, {2, 2}},
                   {"narrow", TensorType::kF16, {3}},
                   {"empty", TensorType::kF32, {0, 4}}};
  tensors.optimizer = {{"hidden1/weights/Momentum", TensorType::kF32, {3, 5}},
                       {"beta1_power", TensorType::kF32, {}},
                       {"global_step", TensorType::kI64, {}}};
  return tensors;
}

// Writes the last piece first: pieces need no order.
absl::Status WriteParts(SafetensorsWriter& file, const std::string& name,
                        absl::Span<const char> bytes) {
  for (uint64_t end = bytes.size(); end > 0;) {
    const uint64_t begin = end > kPartBytes ? end - kPartBytes : 0;
    LOCKSTEP_RETURN_IF_ERROR(
        file.WriteAt(name, begin, bytes.subspan(begin, end - begin)));
    end = begin;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status WriteRising(SafetensorsWriter& file, const std::string& name,
                         T start, size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = start + static_cast<T>(i) / 4;
  }
  return WriteParts(file, name,
                    {reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T)});
}

absl::Status Fill(CheckpointWriter& writer) {
  const uint16_t halves[] = {0x3c00, 0x3d00, 0x3e00};  // 1, 1.25, 1.5
  SafetensorsWriter& model = writer.model();
  LOCKSTEP_RETURN_IF_ERROR(WriteRising(model, "hidden1/weights", 0.5f, 15));
  LOCKSTEP_RETURN_IF_ERROR(WriteRising(model, "hidden1/biases", -2.0f, 5));
  LOCKSTEP_RETURN_IF_ERROR(WriteRising(model, "wide", 1e10, 4));
  LOCKSTEP_RETURN_IF_ERROR(
      WriteParts(model, "narrow",
                 {reinterpret_cast<const char*>(halves), sizeof(halves)}));
  SafetensorsWriter& optimizer = writer.optimizer();
  LOCKSTEP_RETURN_IF_ERROR(
      WriteRising(optimizer, "hidden1/weights/Momentum", 100.0f, 15));
  LOCKSTEP_RETURN_IF_ERROR(WriteRising(optimizer, "beta1_power", 0.75f, 1));
  return optimizer.WriteInt64("global_step", kStep);
}

absl::Status WriteSample(const std::string& directory) {
  CheckpointStore store(directory);
  LOCKSTEP_ASSIGN_OR_RETURN(auto writer, store.Begin(kStep, Tensors()));
  LOCKSTEP_RETURN_IF_ERROR(Fill(*writer));
  Manifest manifest;
  manifest.job_name = "sample";
  manifest.mode = "strict";
  manifest.num_workers = 3;
  LOCKSTEP_RETURN_IF_ERROR(writer->Commit(manifest));
  return store.Verify(kStep);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_sample_checkpoint DIRECTORY\n";
    return 1;
  }
  const absl::Status written = lockstep::WriteSample(argv[1]);
  if (!written.ok()) std::cerr << written << "\n";
  return written.ok() ? 0 : 1;
}
