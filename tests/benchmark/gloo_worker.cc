#include "tests/benchmark/gloo_worker.h"

#ifdef LOCKSTEP_WITH_GLOO

#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "gloo/allreduce.h"
#include "gloo/math.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/tcp/device.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/huge_buffer.h"
#include "tests/benchmark/step_samples.h"
#include "tests/benchmark/tcp_kernel.h"

namespace lockstep::benchmark {
namespace {

constexpr size_t kCheckEvery = size_t{1} << 18;  // elements

absl::Span<float> Floats(const HugeBuffer& buffer, size_t count) {
  return {reinterpret_cast<float*>(buffer.bytes().data()), count};
}

// Connects all workers, which find each other by files.
std::shared_ptr<gloo::Context> Connect(const Cluster& cluster,
                                       const std::string& directory) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(directory);
  auto context = std::make_shared<gloo::rendezvous::Context>(
      cluster.self().index, cluster.num_workers());
  context->connectFullMesh(store, device);
  return context;
}

// Sums `from` of all workers to `sum` of each.
void AllReduce(const std::shared_ptr<gloo::Context>& context,
               absl::Span<float> from, absl::Span<float> sum) {
  gloo::AllreduceOptions options(context);
  options.setInput(from.data(), from.size());
  options.setOutput(sum.data(), sum.size());
  options.setReduceFunction(gloo::AllreduceOptions::Func(
      static_cast<void (*)(void*, const void*, const void*, size_t)>(
          gloo::sum<float>)));
  gloo::allreduce(options);
}

absl::Status CheckValues(absl::Span<const float> values,
                         const MomentumOracle& oracle) {
  for (size_t i = 0; i < values.size(); i += kCheckEvery) {
    LOCKSTEP_RETURN_IF_ERROR(oracle.Check(values[i]));
  }
  return oracle.Check(values.back());
}

absl::Status Train(const Cluster& cluster, const RoleOptions& options) {
  const int worker = cluster.self().index;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<VariableSpec> variables,
      MakeBenchmarkVariables(options.model, options.bytes));
  const auto bytes = static_cast<size_t>(TotalBytes(variables));
  const size_t count = bytes / sizeof(float);
  const HugeBuffer buffers[] = {HugeBuffer(bytes), HugeBuffer(bytes),
                                HugeBuffer(bytes), HugeBuffer(bytes)};
  const absl::Span<float> gradient = Floats(buffers[0], count);
  const absl::Span<float> sum = Floats(buffers[1], count);
  const absl::Span<float> velocity = Floats(buffers[2], count);
  const absl::Span<float> values = Floats(buffers[3], count);
  std::fill(gradient.begin(), gradient.end(), GradientOf(worker));
  const std::string directory = options.record + ".gloo";
  std::error_code ignored;  // the store reports what is wrong
  std::filesystem::create_directories(directory, ignored);
  const std::shared_ptr<gloo::Context> context = Connect(cluster, directory);
  MomentumOracle oracle(cluster.num_workers());
  RunRecorder recorder(options.warmup, options.steps);
  for (int64_t step = 1; step <= AllSteps(options); ++step) {
    const int64_t began = NowNanoseconds();
    oracle.AdvanceTo(step);
    AllReduce(context, gradient, sum);
    MomentumOfSum(sum.data(), count, cluster.num_workers(), velocity.data(),
                  values.data());
    LOCKSTEP_RETURN_IF_ERROR(CheckValues(values, oracle));
    StepSample sample;
    sample.total = NowNanoseconds() - began;
    if (worker == 0) recorder.Add(sample);
  }
  if (worker != 0) return absl::OkStatus();
  return WriteRecord(options.record, recorder.Finish());
}

}  // namespace

bool HasGloo() { return true; }

absl::Status RunGlooWorker(const Cluster& cluster, const RoleOptions& options) {
  // gloo reports errors by exceptions.
  try {
    return Train(cluster, options);
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("gloo: ", error.what()));
  }
}

}  // namespace lockstep::benchmark

#else

namespace lockstep::benchmark {

bool HasGloo() { return false; }

absl::Status RunGlooWorker(const Cluster& /*cluster*/,
                           const RoleOptions& /*options*/) {
  return absl::UnimplementedError(
      "this build has no gloo; install libgloo-dev and configure anew");
}

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_WITH_GLOO
