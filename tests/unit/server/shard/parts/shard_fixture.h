#ifndef LOCKSTEP_TESTS_UNIT_SERVER_SHARD_PARTS_SHARD_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_SERVER_SHARD_PARTS_SHARD_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "server/shard/parts/shard_state.h"
#include "server/step/engine.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::server {

template <typename T>
absl::Span<const std::byte> BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

template <typename T>
PartGradient GradientOf(std::vector<T> values) {
  auto owner = std::make_shared<std::vector<T>>(std::move(values));
  const absl::Span<const std::byte> bytes = BytesOf(*owner);
  return {{{bytes.data(), bytes.size()}}, owner};
}

inline PartGradient BFloat16GradientOf(std::vector<uint16_t> bits) {
  PartGradient gradient = GradientOf(std::move(bits));
  gradient.type = GradientType::kBFloat16;
  return gradient;
}

inline PartGradient AbsentGradient() {
  PartGradient gradient;
  gradient.absent = true;
  return gradient;
}

template <typename T>
std::vector<T> FromBytes(absl::Span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A server with three parts: both halves of the float32 variable "w", which
// starts at 1, and the float64 variable "b", which starts at 2. Two workers,
// both count; learning rate 0.5.
class ShardFixture : public ::testing::Test {
 protected:
  static constexpr int kParts = 3;
  static constexpr size_t kPartSize = 16;  // bytes, of each of them

  ShardFixture() {
    options_.job.replicas_to_aggregate = 2;
    options_.job.total_num_replicas = 2;
    options_.job.learning_rate.base = 0.5;
    options_.job_id = "job";
    options_.incarnation = 1;
    options_.state_dir = temp_dir_.path();
    options_.variables = {
        {"w", {8}, DType::kFloat32, {Initializer::Kind::kConstant, 1, 0}},
        {"b", {2}, DType::kFloat64, {Initializer::Kind::kConstant, 2, 0}}};
    options_.parts = {{0, 0, 4, DType::kFloat32},
                      {0, 4, 4, DType::kFloat32},
                      {1, 0, 2, DType::kFloat64}};
  }

  // Gradients of all parts, every element the same.
  static std::vector<PartGradient> Gradients(float value) {
    return {GradientOf(std::vector<float>(4, value)),
            GradientOf(std::vector<float>(4, value)),
            GradientOf(std::vector<double>(2, value))};
  }

  size_t StateFiles() const {
    size_t files = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(temp_dir_.path())) {
      ++files;
    }
    return files;
  }

  const testing::TempDir temp_dir_;
  ShardState::Options options_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_TESTS_UNIT_SERVER_SHARD_PARTS_SHARD_FIXTURE_H_
