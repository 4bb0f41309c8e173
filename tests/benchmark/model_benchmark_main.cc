#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "worker/compute/registry.h"
#include "worker/compute/replay/recorder.h"
#include "worker/device/device_variables.h"
#include "worker/device/model_gradient_source.h"
#include "worker/memory/parameter_memory.h"
#include "worker/models/zoo/registry.h"

// model_benchmark.py starts this program and sends the start of each
// computation. With --replay_rounds it compares replayed with launched passes.

namespace lockstep::benchmark {
namespace {

struct Flags {
  ModelConfig model;
  worker::ModelInput input{1, 1, 1, 10, 0};
  int64_t batch = 64;
  std::string device = "auto";
  std::string precision = "float32";
  int threads = 0;
  int replay_rounds = 0;
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
  app.add_option("--replay_rounds", flags.replay_rounds,
                 "So many times, time passes that are replayed and passes that "
                 "are launched, in turn, and print the ratios.");
}

worker::Precision PrecisionOf(const std::string& name) {
  if (name == "tf32") return worker::Precision::kTf32;
  return name == "bfloat16" ? worker::Precision::kBfloat16
                            : worker::Precision::kFloat32;
}

float Wave(size_t i) { return std::sin(0.7f * static_cast<float>(i)); }

worker::Batch MakeBatch(const worker::ModelInput& input, int64_t size) {
  worker::Batch batch;
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

void FillVariables(const worker::Model& model,
                   const worker::ParameterMemory& memory) {
  for (size_t k = 0; k < model.variables().size(); ++k) {
    const absl::Span<std::byte> bytes = memory.value(k);
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      values[i] = 0.05f * Wave(i + k);
    }
  }
}

// A model with all that its passes need.
struct Bench {
  std::unique_ptr<worker::Model> model;
  std::unique_ptr<worker::ComputeBackend> backend;
  std::unique_ptr<worker::ParameterMemory> memory;
  worker::Batch batch;
};

absl::StatusOr<Bench> MakeBench(const Flags& flags) {
  Bench bench;
  LOCKSTEP_ASSIGN_OR_RETURN(bench.model,
                            worker::MakeModel(flags.model, flags.input));
  LOCKSTEP_ASSIGN_OR_RETURN(
      bench.backend,
      worker::MakeBackend(flags.device, {.threads = flags.threads}));
  bench.backend->set_precision(PrecisionOf(flags.precision));
  LOCKSTEP_ASSIGN_OR_RETURN(
      worker::ParameterMemory memory,
      worker::ParameterMemory::Make(bench.model->variables()));
  bench.memory = std::make_unique<worker::ParameterMemory>(std::move(memory));
  FillVariables(*bench.model, *bench.memory);
  bench.batch = MakeBatch(flags.input, flags.batch);
  return bench;
}

// Milliseconds of a pass.
using Passes = std::function<absl::Status(int count)>;
absl::StatusOr<double> Time(int count, const Passes& passes) {
  const auto began = std::chrono::steady_clock::now();
  LOCKSTEP_RETURN_IF_ERROR(passes(count));
  const std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - began;
  return took.count() / count;
}

Passes PassesOf(worker::ModelGradientSource& source, int64_t& index) {
  return [&](int count) -> absl::Status {
    for (int i = 0; i < count; ++i) {
      worker::GradientPass pass;
      LOCKSTEP_RETURN_IF_ERROR(source.Begin(index++, pass));
      LOCKSTEP_RETURN_IF_ERROR(source.Finish(pass).status());
    }
    return absl::OkStatus();
  };
}

// For each number read, computes that many passes, after one warm-up pass, and
// prints the milliseconds of one pass.
absl::Status Serve(const Flags& flags) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Bench bench, MakeBench(flags));
  worker::ModelGradientSource source(*bench.model, flags.input, *bench.backend,
                                     [&](int64_t) { return bench.batch; },
                                     *bench.memory, {});
  int64_t index = 0;
  const Passes passes = PassesOf(source, index);
  LOCKSTEP_RETURN_IF_ERROR(passes(1));
  std::cout << bench.backend->name() << std::endl;
  for (int count = 0; std::cin >> count;) {
    LOCKSTEP_ASSIGN_OR_RETURN(const double took, Time(count, passes));
    std::cout << took << std::endl;
  }
  return absl::OkStatus();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Alternates, so that other load affects both equally.
absl::Status CompareInTurn(const char* what, int rounds, const Passes& replayed,
                           const Passes& launched) {
  constexpr int kPasses = 200;
  std::vector<double> ours, theirs, ratios;
  for (int round = -2; round < rounds; ++round) {
    LOCKSTEP_ASSIGN_OR_RETURN(const double one, Time(kPasses, replayed));
    LOCKSTEP_ASSIGN_OR_RETURN(const double other, Time(kPasses, launched));
    if (round < 0) continue;  // warm-up and recording
    ours.push_back(one);
    theirs.push_back(other);
    ratios.push_back(other / one);
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  std::cout << what << ": replayed " << Median(ours) << " ms, launched "
            << Median(theirs) << " ms, ratio " << Median(ratios) << " [" << *low
            << ", " << *high << "]" << std::endl;
  return absl::OkStatus();
}

// Only the operations of passes, back to back on the device: their time without
// the copies of a worker's pass.
absl::Status CompareOperations(const Flags& flags, const Bench& bench) {
  worker::ComputeBackend& backend = *bench.backend;
  worker::DeviceVariables device(bench.model->variables(), *bench.memory,
                                 backend);
  LOCKSTEP_RETURN_IF_ERROR(device.Upload());
  worker::BatchStage stage(backend, flags.input);
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::BatchView view,
                            stage.View(bench.batch, 0, bench.batch.size));
  worker::Scratch loss_memory;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const worker::Tensor loss,
      loss_memory.Reserve(backend, worker::ElementType::kFloat64, {1}));
  worker::Recorder recorder(backend);
  const auto launch = [&] {
    return bench.model->Gradients(backend, view, device.values(),
                                  device.gradients(), loss);
  };
  const auto passes = [&](int count, bool replay) -> absl::Status {
    for (int i = 0; i < count; ++i) {
      LOCKSTEP_RETURN_IF_ERROR(replay ? recorder.Run({}, launch) : launch());
    }
    double waited = 0;
    return backend.Download(loss,
                            worker::Tensor(loss.type(), loss.shape(), &waited));
  };
  return CompareInTurn(
      "operations", flags.replay_rounds,
      [&](int count) { return passes(count, true); },
      [&](int count) { return passes(count, false); });
}

absl::Status CompareReplay(const Flags& flags) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Bench bench, MakeBench(flags));
  const auto batches = [&](int64_t) { return bench.batch; };
  worker::ModelGradientSource replaying(
      *bench.model, flags.input, *bench.backend, batches, *bench.memory, {});
  worker::ModelGradientSource launching(*bench.model, flags.input,
                                        *bench.backend, batches, *bench.memory,
                                        {.replay = false});
  int64_t first = 0, second = 0;
  LOCKSTEP_RETURN_IF_ERROR(PassesOf(replaying, first)(3));
  if (replaying.replays() == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no pass was replayed on ", bench.backend->name(),
        "; that takes --device cuda, and a small model without dropout"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CompareInTurn("passes", flags.replay_rounds,
                                         PassesOf(replaying, first),
                                         PassesOf(launching, second)));
  return CompareOperations(flags, bench);
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
  const absl::Status status = flags.replay_rounds > 0
                                  ? lockstep::benchmark::CompareReplay(flags)
                                  : lockstep::benchmark::Serve(flags);
  if (status.ok()) return 0;
  std::cerr << "model_benchmark: " << status.message() << "\n";
  return 1;
}
