#ifndef LOCKSTEP_TESTS_UNIT_WORKER_MODELS_ZOO_MODEL_TRAINER_H_
#define LOCKSTEP_TESTS_UNIT_WORKER_MODELS_ZOO_MODEL_TRAINER_H_

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/tape_backend.h"
#include "tests/testing/hooked_pass.h"
#include "tests/testing/status_matchers.h"
#include "worker/device/model_gradient_source.h"
#include "worker/models/zoo/registry.h"

namespace lockstep::testing {

inline constexpr worker::ModelInput kPictures = {
    .height = 5, .width = 4, .channels = 1, .classes = 3};
inline constexpr worker::ModelInput kText = {
    .height = 1, .width = 1, .channels = 1, .classes = 7, .tokens = 6};
inline constexpr int64_t kExamples = 4;

// Other examples for each index.
inline worker::Batch MakeBatch(const worker::ModelInput& input, int64_t index) {
  worker::Batch batch;
  batch.size = kExamples;
  for (const double x : RandomValues(kExamples * input.elements(), index)) {
    batch.images.push_back(static_cast<float>(x));
  }
  const int64_t labels = kExamples * std::max<int64_t>(1, input.tokens);
  for (int64_t i = 0; i < labels; ++i) {
    batch.labels.push_back(static_cast<int32_t>((i + index) % input.classes));
    batch.tokens.push_back(static_cast<int32_t>(i * index % input.classes));
  }
  return batch;
}

// A model on a device that can record.
class ModelTrainer {
 public:
  ModelTrainer(const ModelConfig& config, const worker::ModelInput& input,
               const worker::ModelGradientSource::Options& options)
      : model_(*worker::MakeModel(config, input)),
        memory_(*worker::ParameterMemory::Make(model_->variables())),
        source_(
            *model_, input, backend_,
            [input](int64_t index) { return MakeBatch(input, index); }, memory_,
            options) {}

  TapeBackend& backend() { return backend_; }
  worker::ModelGradientSource& source() { return source_; }

  size_t num_variables() const { return model_->variables().size(); }
  absl::Span<std::byte> gradient(size_t variable) {
    return memory_.gradient(variable);
  }

  // All values of a variable are new for each step, as after a pull.
  void SetValue(int step, size_t variable) {
    const absl::Span<std::byte> bytes = memory_.value(variable);
    const auto count = static_cast<int64_t>(bytes.size() / sizeof(float));
    std::vector<float> values;
    for (const double x : RandomValues(count, 100 * step + variable)) {
      values.push_back(static_cast<float>(x));
    }
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  void FillValues(float value) {
    for (size_t k = 0; k < num_variables(); ++k) {
      const absl::Span<std::byte> bytes = memory_.value(k);
      std::fill_n(reinterpret_cast<float*>(bytes.data()),
                  bytes.size() / sizeof(float), value);
    }
  }
  void SetFirstValue(float value) {
    std::memcpy(memory_.value(0).data(), &value, sizeof(value));
  }

  // The loss, then all gradients.
  std::vector<float> Pass(int step) {
    for (size_t k = 0; k < num_variables(); ++k) SetValue(step, k);
    return PassWith(step, {});
  }
  // The same with the values that are there, or that the hooks set.
  std::vector<float> PassWith(int step, const PassHooks& hooks) {
    const absl::StatusOr<worker::GradientResult> result =
        ComputePass(source_, step, hooks);
    EXPECT_OK(result);
    if (!result.ok()) return {};
    std::vector<float> found = {static_cast<float>(result->loss)};
    for (size_t k = 0; k < num_variables(); ++k) {
      const absl::Span<std::byte> bytes = memory_.gradient(k);
      std::vector<float> gradient(bytes.size() / sizeof(float));
      std::memcpy(gradient.data(), bytes.data(), bytes.size());
      found.insert(found.end(), gradient.begin(), gradient.end());
    }
    return found;
  }

 private:
  TapeBackend backend_;
  const std::unique_ptr<worker::Model> model_;
  const worker::ParameterMemory memory_;
  worker::ModelGradientSource source_;
};

inline ModelConfig ConfigOf(const std::string& kind) {
  ModelConfig config;
  config.kind = kind;
  if (kind == "mlp") config.hidden_units = {9};
  if (kind == "cnn" || kind == "resnet") config.conv_filters = {3, 2};
  if (kind == "resnet" || kind == "transformer") config.layers = 1;
  if (kind == "transformer") {
    config.heads = 2;
    config.width = 8;
  }
  return config;
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_WORKER_MODELS_ZOO_MODEL_TRAINER_H_
