#include "tests/unit/worker/models/zoo/model_harness.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/gradient_check.h"
#include "worker/compute/registry.h"

namespace lockstep::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

worker::Shape ShapeOf(const VariableSpec& spec) {
  return worker::Shape(spec.shape.begin(), spec.shape.end());
}

}  // namespace

ModelConfig Config(std::string kind, std::vector<int64_t> hidden_units,
                   std::vector<int64_t> conv_filters, int64_t kernel_size) {
  return {std::move(kind), std::move(hidden_units), std::move(conv_filters),
          kernel_size};
}

std::vector<std::string> Signatures(const worker::Model& model) {
  std::vector<std::string> signatures;
  for (const VariableSpec& spec : model.variables()) {
    signatures.push_back(spec.name + ShapeString(spec.shape));
  }
  return signatures;
}

ModelHarness::ModelHarness(std::unique_ptr<worker::Model> model,
                           const worker::ModelInput& input, int64_t examples)
    : model_(std::move(model)),
      backend_(*worker::MakeBackend("cpu", {.threads = 1})),
      image_shape_({examples, input.height, input.width, input.channels}),
      token_shape_({examples, input.tokens}),
      images_(RandomValues(image_shape_, 1)),
      classes_(input.classes) {
  for (const VariableSpec& spec : model_->variables()) {
    const int64_t count = NumElements(spec.shape);
    values_.push_back(RandomValues(count, 100 + values_.size()));
    for (double& value : values_.back()) value *= 0.5;
    gradients_.emplace_back(count, kNaN);
  }
  const int64_t labels = input.tokens > 0 ? examples * input.tokens : examples;
  for (int64_t i = 0; i < labels; ++i) {
    labels_.push_back(static_cast<int32_t>(i % input.classes));
    tokens_.push_back(static_cast<int32_t>(i * 7 % input.classes));
  }
}

worker::BatchView ModelHarness::Batch() const {
  const auto count = static_cast<int64_t>(labels_.size());
  return {.images = worker::ConstTensor::Of<double>(images_, image_shape_),
          .labels = worker::ConstTensor::Of<int32_t>(labels_, {count})
                        .WithBound(classes_),
          .tokens = worker::ConstTensor::Of<int32_t>(tokens_, token_shape_)
                        .WithBound(classes_),
          .key = key_};
}

std::vector<worker::ConstTensor> ModelHarness::Variables() const {
  std::vector<worker::ConstTensor> tensors;
  for (size_t i = 0; i < values_.size(); ++i) {
    tensors.push_back(worker::ConstTensor::Of<double>(
        values_[i], ShapeOf(model_->variables()[i])));
  }
  return tensors;
}

std::vector<worker::Tensor> ModelHarness::Gradients() {
  std::vector<worker::Tensor> tensors;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    tensors.push_back(worker::Tensor::Of<double>(
        absl::MakeSpan(gradients_[i]), ShapeOf(model_->variables()[i])));
  }
  return tensors;
}

double ModelHarness::Pass(const PassHooks& hooks) {
  HookedPass pass(hooks);
  const absl::Status status = model_->Gradients(*backend_, Batch(), Variables(),
                                                Gradients(), Loss(), pass);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? loss_ : kNaN;
}

void ModelHarness::ExpectTrueGradients(const std::vector<std::string>& others) {
  Pass();
  const std::vector<std::vector<double>> gradients = gradients_;

  for (size_t i = 0; i < values_.size(); ++i) {
    const std::string& name = model_->variables()[i].name;
    if (std::any_of(others.begin(), others.end(), [&](const auto& end) {
          return absl::EndsWith(name, end);
        })) {
      continue;
    }
    const std::vector<double> point = values_[i];
    const auto loss = [&](const std::vector<double>& moved) {
      values_[i] = moved;
      return Pass();
    };
    ExpectGradient(loss, point, gradients[i], name);
    values_[i] = point;
  }
}

double ModelHarness::TrainAndScore(int steps, double learning_rate) {
  for (int step = 0; step < steps; ++step) {
    Pass();
    for (size_t i = 0; i < values_.size(); ++i) {
      for (size_t j = 0; j < values_[i].size(); ++j) {
        values_[i][j] -= learning_rate * gradients_[i][j];
      }
    }
  }
  const absl::StatusOr<worker::BatchScore> evaluation =
      model_->Evaluate(*backend_, Batch(), Variables());
  EXPECT_TRUE(evaluation.ok()) << evaluation.status();
  return static_cast<double>(evaluation->correct) /
         static_cast<double>(evaluation->examples);
}

}  // namespace lockstep::testing
