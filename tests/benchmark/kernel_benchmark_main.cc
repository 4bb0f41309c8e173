#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "benchmark/benchmark.h"
#include "common/flags/flag_parser.h"
#include "common/numeric/parallel_blocks.h"
#include "server/update/optimizer.h"
#include "server/update/slots.h"
#include "server/update/sparse_optimizer.h"
#include "tests/benchmark/huge_buffer.h"
#include "tests/benchmark/step_samples.h"
#include "tests/benchmark/tcp_kernel.h"

namespace lockstep::benchmark {
namespace {

constexpr size_t kPart = size_t{1}
                         << 20;  // bytes that a server updates at once
// Target, as a fraction of copy-add's bytes per second on as many processors.
constexpr double kGoal = 0.9;
constexpr double kDecayGoal = 0.8;
constexpr char kCopyAdd[] = "copy_add";
constexpr char kParallelCopyAdd[] = "copy_add_parallel";
constexpr char kAdamDecay[] = "sparse_adam_decay";

// Units: bytes between memory and processor for each byte of the model. Bytes
// that are written without a read are fetched first, so they count twice.
constexpr int64_t kCopyAddTraffic = 3;  // g and acc, then acc
constexpr int64_t kDecayTraffic = 4;    // m and v, each read and written
int64_t UpdateTraffic(size_t gradients, size_t slots) {
  const size_t state = 1 + slots;
  return static_cast<int64_t>(gradients + state + 2 * state);
}

std::vector<HugeBuffer> MakeTensors(size_t count, size_t bytes) {
  std::vector<HugeBuffer> tensors;
  for (size_t i = 0; i < count; ++i) {
    const HugeBuffer& tensor = tensors.emplace_back(bytes);
    std::fill_n(reinterpret_cast<float*>(tensor.bytes().data()),
                tensor.bytes().size() / sizeof(float), 1.0f / 1024);
  }
  return tensors;
}

// acc += g over memory that is in no cache: the limit of the machine.
void CopyAdd(::benchmark::State& state, size_t bytes) {
  const std::vector<HugeBuffer> tensors = MakeTensors(2, bytes);
  auto* sum = reinterpret_cast<float*>(tensors[0].bytes().data());
  const auto* from = reinterpret_cast<float*>(tensors[1].bytes().data());
  for (auto _ : state) {
    AddTo(from, bytes / sizeof(float), sum);
    ::benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kCopyAddTraffic *
                          static_cast<int64_t>(bytes));
}

// The same on all processors, the reference for sparse Adam's decay.
void ParallelCopyAdd(::benchmark::State& state, size_t bytes) {
  const std::vector<HugeBuffer> tensors = MakeTensors(2, bytes);
  auto* sum = reinterpret_cast<float*>(tensors[0].bytes().data());
  const auto* from = reinterpret_cast<float*>(tensors[1].bytes().data());
  for (auto _ : state) {
    ForEachBlock(bytes / sizeof(float), [&](size_t first, size_t count) {
      AddTo(from + first, count, sum + first);
    });
    ::benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kCopyAddTraffic *
                          static_cast<int64_t>(bytes));
}

// A model with all its state on a server, and the gradients of a step.
class UpdatedModel {
 public:
  UpdatedModel(const OptimizerConfig& config, size_t gradients, size_t bytes)
      : optimizer_(config),
        bytes_(bytes),
        gradients_(MakeTensors(gradients, bytes)),
        old_(MakeTensors(1 + server::NumSlots(config), bytes)),
        new_(MakeTensors(1 + server::NumSlots(config), bytes)) {}

  // Makes one step, part by part, from the old tensors to the new ones.
  absl::Status Step() {
    for (size_t offset = 0; offset < bytes_; offset += kPart) {
      absl::Status status =
          UpdatePart(offset, std::min(kPart, bytes_ - offset));
      if (!status.ok()) return status;
    }
    std::swap(old_, new_);
    return absl::OkStatus();
  }

 private:
  absl::Status UpdatePart(size_t offset, size_t size) {
    std::vector<server::ByteSlice> slices;
    for (const HugeBuffer& gradient : gradients_) {
      slices.push_back({gradient.bytes().data() + offset, size});
    }
    std::vector<server::GradientSlices> gradients;
    for (const server::ByteSlice& slice : slices) {
      gradients.push_back({absl::MakeConstSpan(&slice, 1)});
    }
    server::ApplyInput input;
    input.learning_rate = 0.01;
    input.powers = server::InitialAdamPowers(optimizer_.config());
    input.gradients = gradients;
    input.divisor = static_cast<int64_t>(gradients.size());
    input.old_value = old_[0].bytes().subspan(offset, size);
    input.new_value = new_[0].bytes().subspan(offset, size);
    for (size_t slot = 0; slot + 1 < old_.size(); ++slot) {
      input.old_slots[slot] = old_[slot + 1].bytes().subspan(offset, size);
      input.new_slots[slot] = new_[slot + 1].bytes().subspan(offset, size);
    }
    return optimizer_.Apply(input);
  }

  const server::Optimizer optimizer_;
  const size_t bytes_;
  const std::vector<HugeBuffer> gradients_;
  std::vector<HugeBuffer> old_;  // the value, then the slots
  std::vector<HugeBuffer> new_;
};

void Update(::benchmark::State& state, const OptimizerConfig& config,
            size_t gradients, size_t bytes) {
  UpdatedModel model(config, gradients, bytes);
  for (auto _ : state) {
    if (absl::Status status = model.Step(); !status.ok()) {
      state.SkipWithError(std::string(status.message()).c_str());
      break;
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes) *
                          UpdateTraffic(gradients, server::NumSlots(config)));
}

// Sparse Adam's decay of m and v, which touches every row of a table for any
// number of gradients.
void AdamDecay(::benchmark::State& state, const OptimizerConfig& config,
               size_t bytes) {
  const std::vector<HugeBuffer> slots = MakeTensors(2, bytes);
  const absl::Span<std::byte> both[] = {slots[0].bytes(), slots[1].bytes()};
  const server::SparseOptimizer optimizer(config);
  for (auto _ : state) {
    if (!optimizer.Decay(DType::kFloat32, both).ok()) {
      state.SkipWithError("the slots were refused");
      break;
    }
    ::benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kDecayTraffic *
                          static_cast<int64_t>(bytes));
}

void RegisterAll(size_t bytes) {
  OptimizerConfig momentum;
  momentum.kind = OptimizerConfig::Kind::kMomentum;
  OptimizerConfig adam;
  adam.kind = OptimizerConfig::Kind::kAdam;
  ::benchmark::RegisterBenchmark(
      kCopyAdd, [=](::benchmark::State& state) { CopyAdd(state, bytes); });
  ::benchmark::RegisterBenchmark(
      kParallelCopyAdd,
      [=](::benchmark::State& state) { ParallelCopyAdd(state, bytes); })
      ->UseRealTime();
  ::benchmark::RegisterBenchmark(kAdamDecay, [=](::benchmark::State& state) {
    AdamDecay(state, adam, bytes);
  })->UseRealTime();
  for (const size_t gradients : {1, 2}) {
    const auto add = [&](const std::string& name, const OptimizerConfig& kind) {
      ::benchmark::RegisterBenchmark(
          absl::StrFormat("%s/gradients:%d", name, gradients).c_str(),
          [=](::benchmark::State& state) {
            Update(state, kind, gradients, bytes);
          });
    };
    add("momentum", momentum);
    add("adam", adam);
  }
}

// Records bytes per second and prints the medians.
class SpeedReporter final : public ::benchmark::ConsoleReporter {
 public:
  SpeedReporter() : ConsoleReporter(OO_None) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> printed;
    for (const Run& run : runs) {
      const bool one = run.run_type == Run::RT_Iteration;
      if (run.aggregate_name == "median" || (one && run.repetitions == 1) ||
          run.error_occurred) {
        printed.push_back(run);
      }
      const auto found = run.counters.find("bytes_per_second");
      if (!one || found == run.counters.end()) continue;
      speeds_[run.run_name.function_name].push_back(found->second.value);
    }
    if (!printed.empty()) ConsoleReporter::ReportRuns(printed);
  }

  void PrintRatios() const {
    std::cerr << absl::StrFormat("\n%-24s  %6s  %5s  %-6s  %s\n", "kernel",
                                 "GB/s", "ratio", "goal", "met");
    for (const auto& [name, speeds] : speeds_) {
      const bool parallel = name == kAdamDecay || name == kParallelCopyAdd;
      const auto base = speeds_.find(parallel ? kParallelCopyAdd : kCopyAdd);
      if (base == speeds_.end()) continue;
      const double ratio = Median(speeds) / Median(base->second);
      const bool judged = name != base->first;
      const double goal = parallel ? kDecayGoal : kGoal;
      std::cerr << absl::StrFormat(
          "%-24s  %6.1f  %5.2f  %-6s  %s\n", name, Median(speeds) / 1e9, ratio,
          judged ? absl::StrFormat(">= %.1f", goal) : "-",
          !judged         ? "-"
          : ratio >= goal ? "yes"
                          : "NO");
    }
  }

 private:
  std::map<std::string, std::vector<double>> speeds_;
};

int Main(int argc, char** argv) {
  // The defaults come first, so that the command line overrides them.
  std::array<std::string, 3> defaults = {
      "--benchmark_repetitions=7", "--benchmark_enable_random_interleaving",
      "--benchmark_min_time=0.3"};
  std::vector<char*> args = {argv[0]};
  for (std::string& flag : defaults) args.push_back(flag.data());
  args.insert(args.end(), argv + 1, argv + argc);
  int count = static_cast<int>(args.size());
  int64_t megabytes = 100;
  FlagParser parser(
      "kernel_benchmark",
      "Times the servers' update kernels over a model that no cache holds, "
      "next "
      "to a plain acc += g. Prints bytes that move between memory and "
      "processor "
      "in a second, and on standard error their ratio to those of acc += g. "
      "Understands the flags of Google Benchmark too, as --benchmark_filter.");
  parser.app()
      .add_option("--megabytes", megabytes, "Size of the model, in MiB.")
      ->check(CLI::Range(1, 16384))
      ->capture_default_str();
  const bool help = std::any_of(argv + 1, argv + argc, [](const char* arg) {
    return std::string(arg) == "--help";
  });
  if (!help) ::benchmark::Initialize(&count, args.data());
  if (auto code = parser.Parse(help ? argc : count, help ? argv : args.data(),
                               std::cout, std::cerr)) {
    return *code;
  }
  RegisterAll(static_cast<size_t>(megabytes) << 20);
  SpeedReporter reporter;
  ::benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.PrintRatios();
  return 0;
}

}  // namespace
}  // namespace lockstep::benchmark

int main(int argc, char** argv) {
  return lockstep::benchmark::Main(argc, argv);
}
