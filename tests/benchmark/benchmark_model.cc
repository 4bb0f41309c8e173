#include "tests/benchmark/benchmark_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::benchmark {
namespace {

constexpr int64_t kElementSize = 4;

void AddConvolution(int64_t kernel, int64_t from, int64_t to,
                    std::vector<int64_t>& sizes) {
  sizes.push_back(kernel * kernel * from * to);
  sizes.push_back(to);  // scale of the batch norm
  sizes.push_back(to);  // offset of the batch norm
}

// Elements of the 161 trainable tensors of ResNet-50.
std::vector<int64_t> ResNet50Sizes() {
  std::vector<int64_t> sizes;
  AddConvolution(7, 3, 64, sizes);
  int64_t from = 64;
  int64_t middle = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    const int64_t to = 4 * middle;
    for (int block = 0; block < blocks; ++block) {
      if (block == 0) AddConvolution(1, from, to, sizes);
      AddConvolution(1, from, middle, sizes);
      AddConvolution(3, middle, middle, sizes);
      AddConvolution(1, middle, to, sizes);
      from = to;
    }
    middle *= 2;
  }
  sizes.push_back(from * 1000);
  sizes.push_back(1000);
  return sizes;
}

// Scales the sizes in proportion, to the total `to`, with at least one element
// each.
absl::StatusOr<std::vector<int64_t>> Scale(std::vector<int64_t> sizes,
                                           int64_t elements) {
  double before = 0;
  for (const int64_t size : sizes) before += static_cast<double>(size);
  int64_t left = elements;
  for (int64_t& size : sizes) {
    const double scaled =
        static_cast<double>(size) * static_cast<double>(elements) / before;
    size = std::max<int64_t>(1, static_cast<int64_t>(scaled));
    left -= size;
  }
  int64_t& largest = *std::max_element(sizes.begin(), sizes.end());
  if (largest + left < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("bytes is ", elements * kElementSize,
                     "; resnet50 has 161 tensors and wants more"));
  }
  largest += left;
  return sizes;
}

}  // namespace

absl::StatusOr<std::vector<VariableSpec>> MakeBenchmarkVariables(
    const std::string& model, int64_t bytes) {
  if (bytes < kElementSize || bytes % kElementSize != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bytes is ", bytes, "; it must be a positive multiple of 4"));
  }
  std::vector<int64_t> sizes;
  if (model == "dense") {
    sizes = {bytes / kElementSize};
  } else if (model == "scalar") {
    return std::vector<VariableSpec>{{"scalar", {}, DType::kFloat32, {}}};
  } else if (model == "resnet50") {
    LOCKSTEP_ASSIGN_OR_RETURN(sizes,
                              Scale(ResNet50Sizes(), bytes / kElementSize));
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "model is \"", model, "\"; write dense, resnet50 or scalar"));
  }
  std::vector<VariableSpec> variables;
  for (size_t i = 0; i < sizes.size(); ++i) {
    variables.push_back(
        {absl::StrCat("tensor_", i), {sizes[i]}, DType::kFloat32, {}});
  }
  return variables;
}

int64_t TotalBytes(const std::vector<VariableSpec>& variables) {
  int64_t bytes = 0;
  for (const VariableSpec& variable : variables) {
    bytes += NumElements(variable.shape) * kElementSize;
  }
  return bytes;
}

float GradientOf(int worker, bool equal) {
  return static_cast<float>(equal ? 1 : worker + 1) / 1024;
}

MomentumOracle::MomentumOracle(int workers, bool equal_gradients) {
  for (int worker = 0; worker < workers; ++worker) {
    mean_ += GradientOf(worker, equal_gradients);
  }
  mean_ /= static_cast<float>(workers);
}

void MomentumOracle::AdvanceTo(int64_t step) {
  for (; step_ < step; ++step_) {
    velocity_ = velocity_ * kMomentum + mean_;
    value_ -= velocity_ * kLearningRate;
  }
}

absl::Status MomentumOracle::Check(float element) const {
  if (std::abs(element - value_) <= std::abs(value_) * 1e-4f) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "after step ", step_, " an element is ", element, ", not ", value_));
}

}  // namespace lockstep::benchmark
