#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_DEVICE_TRAINER_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_DEVICE_TRAINER_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "gtest/gtest.h"
#include "tests/testing/hooked_pass.h"
#include "tests/unit/worker/models/zoo/model_trainer.h"
#include "worker/compute/registry.h"
#include "worker/device/model_gradient_source.h"
#include "worker/models/zoo/registry.h"

namespace lockstep::testing {

// A small model of each kind, and how its passes are computed.
struct TrainedModel {
  std::string kind;
  int64_t micro_batches = 1;
  bool refuse_non_finite = false;
  // Values arrive while the pass is computed, layer by layer.
  bool early = false;
};

// DeviceTrainer computes the passes of a small model on a backend by name. Each
// step has values and examples of its own.
class DeviceTrainer {
 public:
  // Errors: as worker::MakeBackend().
  static absl::StatusOr<std::unique_ptr<DeviceTrainer>> Make(
      const std::string& backend, const TrainedModel& trained) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<worker::ComputeBackend> made,
                              worker::MakeBackend(backend, {.threads = 1}));
    return std::unique_ptr<DeviceTrainer>(
        new DeviceTrainer(std::move(made), trained));
  }

  // Returns the loss, then all gradients.
  absl::StatusOr<std::vector<float>> Pass(int step) {
    PassHooks hooks;
    if (trained_.early) {
      FillValues(kNone);
      hooks.need_values = [&](size_t first, size_t count) {
        for (size_t k = first; k < first + count; ++k) SetValue(step, k);
        return absl::OkStatus();
      };
    } else {
      for (size_t k = 0; k < count(); ++k) SetValue(step, k);
    }
    // As a push does, the servers' answer may overwrite a value from here on.
    std::vector<std::vector<float>> gradients(count());
    hooks.on_gradient = [&](size_t k) {
      gradients[k] = Floats(memory_.gradient(k));
      Fill(memory_.value(k), kNone);
    };
    LOCKSTEP_ASSIGN_OR_RETURN(const worker::GradientResult result,
                              ComputePass(source_, step, hooks));
    std::vector<float> found = {static_cast<float>(result.loss),
                                static_cast<float>(result.non_finite)};
    for (const std::vector<float>& gradient : gradients) {
      found.insert(found.end(), gradient.begin(), gradient.end());
    }
    return found;
  }

  int64_t replays() const { return source_.replays(); }

 private:
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

  DeviceTrainer(std::unique_ptr<worker::ComputeBackend> backend,
                const TrainedModel& trained)
      : trained_(trained),
        input_(trained.kind == "transformer" ? kText : kPictures),
        backend_(std::move(backend)),
        model_(*worker::MakeModel(ConfigOf(trained.kind), input_)),
        memory_(*worker::ParameterMemory::Make(model_->variables())),
        source_(
            *model_, input_, *backend_,
            [input = input_](int64_t index) { return Examples(input, index); },
            memory_,
            {.micro_batches = trained.micro_batches,
             .refuse_non_finite = trained.refuse_non_finite}) {}

  // Two texts are enough, since attention takes long on a CPU.
  static worker::Batch Examples(const worker::ModelInput& input,
                                int64_t index) {
    worker::Batch batch = MakeBatch(input, index);
    if (input.tokens == 0) return batch;
    batch.size = 2;
    batch.images.resize(batch.size * input.elements());
    batch.labels.resize(batch.size * input.tokens);
    batch.tokens.resize(batch.size * input.tokens);
    return batch;
  }

  size_t count() const { return model_->variables().size(); }

  static std::vector<float> Floats(absl::Span<std::byte> bytes) {
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
  }
  static void Fill(absl::Span<std::byte> bytes, float value) {
    std::fill_n(reinterpret_cast<float*>(bytes.data()),
                bytes.size() / sizeof(float), value);
  }
  void FillValues(float value) {
    for (size_t k = 0; k < count(); ++k) Fill(memory_.value(k), value);
  }
  void SetValue(int step, size_t variable) {
    const absl::Span<std::byte> bytes = memory_.value(variable);
    std::vector<float> values;
    for (const double x :
         RandomValues(static_cast<int64_t>(bytes.size() / sizeof(float)),
                      100 * static_cast<uint64_t>(step) + variable)) {
      values.push_back(static_cast<float>(x));
    }
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }

  const TrainedModel trained_;
  const worker::ModelInput input_;
  const std::unique_ptr<worker::ComputeBackend> backend_;
  const std::unique_ptr<worker::Model> model_;
  const worker::ParameterMemory memory_;
  worker::ModelGradientSource source_;
};

// All models that the tests train, each as a test's name may have it.
inline std::vector<TrainedModel> TrainedModels() {
  std::vector<TrainedModel> models;
  for (const char* kind : {"softmax", "mlp", "cnn", "resnet", "transformer"}) {
    models.push_back({.kind = kind});
    models.push_back({.kind = kind, .micro_batches = 2, .early = true});
    models.push_back({.kind = kind, .refuse_non_finite = true, .early = true});
  }
  return models;
}

inline std::string NameOf(const TrainedModel& trained) {
  std::string name = trained.kind;
  if (trained.micro_batches > 1) name += "_in_parts";
  if (trained.refuse_non_finite) name += "_refusing";
  if (trained.early) name += "_early";
  return name;
}

// The results of passes 1 to `steps`; an error fails the test. Counts the
// replays, if asked to.
inline std::vector<std::vector<float>> Passes(const std::string& backend,
                                              const TrainedModel& trained,
                                              int steps,
                                              int64_t* replays = nullptr) {
  std::vector<std::vector<float>> results;
  auto trainer = DeviceTrainer::Make(backend, trained);
  EXPECT_OK(trainer);
  if (!trainer.ok()) return results;
  for (int step = 1; step <= steps; ++step) {
    auto result = (*trainer)->Pass(step);
    EXPECT_OK(result) << "pass " << step;
    results.push_back(result.value_or(std::vector<float>()));
  }
  if (replays != nullptr) *replays = (*trainer)->replays();
  return results;
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_DEVICE_TRAINER_H_
