#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>

#include "common/flags/flag_parser.h"
#include "common/status_macros.h"
#include "worker/compute/registry.h"
#include "worker/model_gradient_source.h"
#include "worker/models/registry.h"
#include "worker/parameter_memory.h"

// model_benchmark.py starts this program and says when to compute.

namespace lockstep::benchmark {
namespace {

struct Flags {
  ModelConfig model;
  ModelInput input{1, 1, 1, 10, 0};
  int64_t batch = 64;
  std::string device = "auto";
  std::string precision = "float32";
  int threads = 0;
};

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("--kind", flags.model.kind, "As model.kind of a job.");
  app.add_option("--hidden_units", flags.model.hidden_units);
  app.add_option("--conv_filters", flags.model.conv_filters);
  app.add_option("--layers", flags.model.layers);
  app.add_option("--heads", flags.model.heads);
  app.add_option("--width", flags.model.width);
  app.add_option("--image_height", flags.input.height, "Pixels.");
  app.add_option("--image_width", flags.input.width, "Pixels.");
  app.add_option("--channels", flags.input.channels);
  app.add_option("--classes", flags.input.classes);
  app.add_option("--tokens", flags.input.tokens, "Of each text; 0: images.");
  app.add_option("--batch", flags.batch, "Examples of a pass.");
  app.add_option("--device", flags.device, "As of worker.");
  app.add_option("--precision", flags.precision, "float32, tf32 or bfloat16.")
      ->check(CLI::IsMember({"float32", "tf32", "bfloat16"}));
  app.add_option("--threads", flags.threads, "0: one per core.");
}

Precision PrecisionOf(const std::string& name) {
  if (name == "tf32") return Precision::kTf32;
  return name == "bfloat16" ? Precision::kBfloat16 : Precision::kFloat32;
}

float Wave(size_t i) { return std::sin(0.7f * static_cast<float>(i)); }

Batch MakeBatch(const ModelInput& input, int64_t size) {
  Batch batch;
  batch.size = size;
  const int64_t labels = size * std::max<int64_t>(1, input.tokens);
  for (int64_t i = 0; i < labels; ++i) {
    batch.labels.push_back(static_cast<int32_t>(i % input.classes));
    batch.tokens.push_back(static_cast<int32_t>(i * 7 % input.classes));
  }
  if (input.tokens > 0) return batch;
  batch.images.resize(static_cast<size_t>(size * input.elements()));
  for (size_t i = 0; i < batch.images.size(); ++i) {
    batch.images[i] = 0.5f + Wave(i) / 2;
  }
  return batch;
}

void FillVariables(const Model& model, const ParameterMemory& memory) {
  for (size_t k = 0; k < model.variables().size(); ++k) {
    const absl::Span<std::byte> bytes = memory.value(k);
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      values[i] = 0.05f * Wave(i + k);
    }
  }
}

// For each number that is read computes so many passes, after one to warm up,
// and prints how many milliseconds one took.
absl::Status Serve(const Flags& flags) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                            MakeModel(flags.model, flags.input));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<ComputeBackend> backend,
      MakeBackend(flags.device, {.threads = flags.threads}));
  backend->set_precision(PrecisionOf(flags.precision));
  const ParameterMemory memory(model->variables());
  FillVariables(*model, memory);
  const Batch batch = MakeBatch(flags.input, flags.batch);
  ModelGradientSource source(*model, flags.input, *backend,
                             [&](int64_t) { return batch; }, memory, {});
  int64_t index = 0;
  LOCKSTEP_RETURN_IF_ERROR(source.Compute(index++, {}).status());
  std::cout << backend->name() << std::endl;
  for (int passes = 0; std::cin >> passes;) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < passes; ++i) {
      LOCKSTEP_RETURN_IF_ERROR(source.Compute(index++, {}).status());
    }
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - began;
    std::cout << took.count() / passes << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::benchmark

int main(int argc, char** argv) {
  lockstep::benchmark::Flags flags;
  lockstep::FlagParser parser(
      "model_benchmark",
      "Times the passes of a model as a worker computes them, next to PyTorch: "
      "run tests/benchmark/model_benchmark.py.");
  lockstep::benchmark::Declare(parser.app(), flags);
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  const absl::Status status = lockstep::benchmark::Serve(flags);
  if (status.ok()) return 0;
  std::cerr << "model_benchmark: " << status.message() << "\n";
  return 1;
}
