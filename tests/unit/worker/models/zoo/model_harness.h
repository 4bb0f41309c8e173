#ifndef LOCKSTEP_TESTS_UNIT_WORKER_MODELS_ZOO_MODEL_HARNESS_H_
#define LOCKSTEP_TESTS_UNIT_WORKER_MODELS_ZOO_MODEL_HARNESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/job/job_config.h"
#include "tests/testing/hooked_pass.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/models/model.h"

namespace lockstep::testing {

// A model's part of the job file.
ModelConfig Config(std::string kind, std::vector<int64_t> hidden_units = {},
                   std::vector<int64_t> conv_filters = {},
                   int64_t kernel_size = 3);

// "name[shape]" of each variable, for comparing.
std::vector<std::string> Signatures(const worker::Model& model);

// ModelHarness is a model in double on the CPU with all that a pass needs:
// random variables, their gradients and a random batch.
class ModelHarness {
 public:
  ModelHarness(std::unique_ptr<worker::Model> model,
               const worker::ModelInput& input, int64_t examples);

  worker::Model& model() { return *model_; }
  worker::ComputeBackend& backend() { return *backend_; }
  worker::BatchView Batch() const;
  std::vector<worker::ConstTensor> Variables() const;
  std::vector<worker::Tensor> Gradients();
  // Where Gradients() puts the loss.
  worker::Tensor Loss() {
    return worker::Tensor(worker::ElementType::kFloat64, {1}, &loss_);
  }

  std::vector<std::vector<double>>& values() { return values_; }
  std::vector<std::vector<double>>& gradients() { return gradients_; }
  std::vector<double>& images() { return images_; }
  std::vector<int32_t>& labels() { return labels_; }
  std::vector<int32_t>& tokens() { return tokens_; }
  // The key of dropout's random numbers.
  void set_key(uint64_t key) { key_ = key; }

  // One pass; a failure fails the test.
  double Pass(const PassHooks& hooks = {});

  // Expects the gradients of a pass to be the derivatives of its loss, but for
  // variables whose name ends in one of `others`.
  void ExpectTrueGradients(const std::vector<std::string>& others = {});

  // Gradient descent; returns the share of the batch that is then right.
  double TrainAndScore(int steps, double learning_rate);

 private:
  const std::unique_ptr<worker::Model> model_;
  const std::unique_ptr<worker::ComputeBackend> backend_;
  const worker::Shape image_shape_;
  const worker::Shape token_shape_;
  std::vector<std::vector<double>> values_;
  std::vector<std::vector<double>> gradients_;
  std::vector<double> images_;
  std::vector<int32_t> labels_;
  std::vector<int32_t> tokens_;  // of models of text
  const int64_t classes_;
  double loss_ = 0;
  uint64_t key_ = 1;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_WORKER_MODELS_ZOO_MODEL_HARNESS_H_
