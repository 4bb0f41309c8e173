#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/cuda_backend.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/replay/recording.h"
#include "worker/compute/tensor/tensor.h"

// The speed of the CUDA backend on a GPU, relative to the GPU's own libraries.
// Both sides of a ratio are timed in turn; figures are medians.

namespace lockstep::benchmark {
namespace {

constexpr int kRounds = 7;
constexpr worker::ElementType kFloat = worker::ElementType::kFloat32;
constexpr int64_t kColumns = 1 << 10;

struct Sizes {
  int64_t side = 8192;                   // rows and columns of matrices
  int64_t rows = 1 << 18;                // of a tensor of 1 GiB
  int64_t copied = int64_t{1} << 26;     // floats: 256 MiB
  int64_t examples = 128, hidden = 256;  // of the pass that is replayed
};
// Tries the program on a simulated device; its figures mean nothing.
constexpr Sizes kSmall = {64, 8, 1 << 12, 4, 8};

Sizes sizes;
const std::string kDevice = "device 0";

using Work = std::function<absl::Status()>;

absl::Status Cuda(cudaError_t error, const char* call) {
  return worker::cuda::ToStatus(error, {call, "gpu_benchmark", kDevice});
}

absl::Status Wait() { return Cuda(cudaDeviceSynchronize(), "synchronize"); }

// Returns the seconds until the device has done `work` `count` times.
absl::StatusOr<double> Time(int count, const Work& work) {
  LOCKSTEP_RETURN_IF_ERROR(Wait());
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) LOCKSTEP_RETURN_IF_ERROR(work());
  LOCKSTEP_RETURN_IF_ERROR(Wait());
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - began;
  return took.count() / count;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Returns median seconds of each, run in turn after one warm-up round.
absl::StatusOr<std::vector<double>> InTurn(int count,
                                           const std::vector<Work>& works) {
  std::vector<std::vector<double>> times(works.size());
  for (int round = -1; round < kRounds; ++round) {
    for (size_t i = 0; i < works.size(); ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(const double took, Time(count, works[i]));
      if (round >= 0) times[i].push_back(took);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& of_one : times) {
    medians.push_back(Median(std::move(of_one)));
  }
  return medians;
}

void Print(const std::string& what, double ratio, const std::string& of) {
  std::cout << what << ": " << ratio << " of " << of << std::endl;
}

// Tensors on the device. They are not zero, because zeros take less power than
// real data and allow a higher clock.
class Bench {
 public:
  explicit Bench(std::unique_ptr<worker::ComputeBackend> backend)
      : backend_(std::move(backend)) {}

  worker::ComputeBackend& backend() { return *backend_; }

  // Returns a tensor of numbers in [-1, 1).
  absl::StatusOr<worker::Tensor> Random(const worker::Shape& shape) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t count,
                              worker::CountElements(shape));
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      state_ = state_ * 1664525u + 1013904223u;
      value = static_cast<float>(static_cast<int32_t>(state_)) * 0x1p-31f;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        worker::Buffer buffer,
        backend_->Allocate(values.size() * sizeof(float)));
    const worker::Tensor tensor(kFloat, shape, buffer.data());
    buffers_.push_back(std::move(buffer));
    LOCKSTEP_RETURN_IF_ERROR(backend_->Upload(
        worker::ConstTensor::Of<float>(values, shape), tensor));
    return tensor;
  }

 private:
  std::unique_ptr<worker::ComputeBackend> backend_;
  std::vector<worker::Buffer> buffers_;
  uint32_t state_ = 1;
};

absl::StatusOr<Bench> MakeBench() {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<worker::ComputeBackend> backend,
                            worker::MakeCudaBackend());
  return Bench(std::move(backend));
}

// Compares MatMul() with operands rounded to bfloat16 with the equivalent call
// of cuBLAS.
absl::Status Gemm() {
  LOCKSTEP_ASSIGN_OR_RETURN(Bench bench, MakeBench());
  bench.backend().set_precision(worker::Precision::kBfloat16);
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor a,
                            bench.Random({sizes.side, sizes.side}));
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor b,
                            bench.Random({sizes.side, sizes.side}));
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor out,
                            bench.Random({sizes.side, sizes.side}));
  cublasHandle_t blas = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(worker::cuda::ToStatus(
      cublasCreate(&blas), {"cublasCreate", "gpu_benchmark", kDevice}));
  const std::unique_ptr<cublasContext, cublasStatus_t (*)(cublasHandle_t)>
      owner(blas, cublasDestroy);
  const int side = static_cast<int>(sizes.side);
  const float one = 1, zero = 0;
  const auto bare = [&] {
    return worker::cuda::ToStatus(
        cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one,
                     b.raw(), CUDA_R_32F, side, a.raw(), CUDA_R_32F, side,
                     &zero, out.raw(), CUDA_R_32F, side,
                     CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_GEMM_DEFAULT),
        {"cublasGemmEx", "gpu_benchmark", kDevice});
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<double> seconds,
      InTurn(5, {[&] { return bench.backend().MatMul(a, b, {}, out); }, bare}));
  Print("gemm", seconds[1] / seconds[0], "bare cuBLAS");
  const double operations = 2.0 * sizes.side * sizes.side * sizes.side;
  std::cout << "gemm: " << operations / seconds[0] / 1e12 << " TFLOP/s\n";
  return absl::OkStatus();
}

// Memory-bound operations, measured by the bytes per second that they must
// move.
absl::Status Kernels() {
  LOCKSTEP_ASSIGN_OR_RETURN(Bench bench, MakeBench());
  worker::ComputeBackend& backend = bench.backend();
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor in,
                            bench.Random({sizes.rows, kColumns}));
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor out,
                            bench.Random({sizes.rows, kColumns}));
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor row, bench.Random({kColumns}));
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor kept,
                            bench.Random({sizes.rows, 2}));
  struct Kernel {
    const char* name;
    int moves;  // bytes moved, as a multiple of those of `in`
    Work work;
  };
  const std::vector<Kernel> kernels = {
      {"AddBias", 2, [&] { return backend.AddBias(row, out); }},
      {"Relu", 2, [&] { return backend.Relu(in, out); }},
      {"ReluGradient", 3, [&] { return backend.ReluGradient(in, out, out); }},
      {"Activate", 2,
       [&] { return backend.Activate(worker::Activation::kGelu, in, out); }},
      {"Combine", 3, [&] { return backend.Combine(in, 1, 1, out); }},
      {"Dropout", 2,
       [&] {
         return backend.Dropout(in, {0.1, 1}, out);
       }},
      {"BiasGradient", 1, [&] { return backend.BiasGradient(in, row); }},
      {"LayerNorm", 2,
       [&] { return backend.LayerNorm(in, row, row, 1e-5, out, kept); }}};
  const Work copy = [&] {
    return Cuda(cudaMemcpyAsync(out.raw(), in.raw(), in.bytes(),
                                cudaMemcpyDeviceToDevice),
                "cudaMemcpyAsync");
  };
  for (const Kernel& kernel : kernels) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                              InTurn(10, {kernel.work, copy}));
    Print(kernel.name, kernel.moves / seconds[0] * seconds[1] / 2,
          "a device copy");
  }
  return absl::OkStatus();
}

Work Uploading(worker::ComputeBackend& backend, const worker::ConstTensor& host,
               const worker::Tensor& there) {
  return [&backend, host, there]() -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const worker::CopyId copy,
                              backend.StartUpload(host, there));
    return backend.FinishCopy(copy);
  };
}

// Compares copies from pinned memory with copies from ordinary memory.
absl::Status Pinned() {
  LOCKSTEP_ASSIGN_OR_RETURN(Bench bench, MakeBench());
  std::vector<float> ordinary(sizes.copied), pinned(sizes.copied);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const worker::Buffer pin,
      bench.backend().Pin({reinterpret_cast<std::byte*>(pinned.data()),
                           pinned.size() * sizeof(float)}));
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor there,
                            bench.Random({sizes.copied}));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<double> seconds,
      InTurn(
          3,
          {Uploading(bench.backend(),
                     worker::ConstTensor::Of<float>(pinned, {sizes.copied}),
                     there),
           Uploading(bench.backend(),
                     worker::ConstTensor::Of<float>(ordinary, {sizes.copied}),
                     there)}));
  Print("pinned", seconds[1] / seconds[0], "the speed of pageable copies");
  std::cout << "pinned: " << there.bytes() / seconds[0] / 1e9 << " GB/s\n";
  return absl::OkStatus();
}

// Compares a step that computes while it copies with the longer of both alone.
absl::Status Overlap() {
  LOCKSTEP_ASSIGN_OR_RETURN(Bench bench, MakeBench());
  worker::ComputeBackend& backend = bench.backend();
  std::vector<float> memory(sizes.copied);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const worker::Buffer pin,
      backend.Pin({reinterpret_cast<std::byte*>(memory.data()),
                   memory.size() * sizeof(float)}));
  const worker::ConstTensor host =
      worker::ConstTensor::Of<float>(memory, {sizes.copied});
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor there,
                            bench.Random({sizes.copied}));
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor a,
                            bench.Random({sizes.side / 4, sizes.side / 4}));
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Tensor out,
                            bench.Random({sizes.side / 4, sizes.side / 4}));
  const Work copy = Uploading(backend, host, there);
  const Work product = [&] { return backend.MatMul(a, a, {}, out); };
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> alone,
                            InTurn(3, {copy, product}));
  const int products = std::max(1, static_cast<int>(alone[0] / alone[1]));
  const Work compute = [&]() -> absl::Status {
    for (int i = 0; i < products; ++i) LOCKSTEP_RETURN_IF_ERROR(product());
    return Wait();
  };
  const Work both = [&]() -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const worker::CopyId id,
                              backend.StartUpload(host, there));
    LOCKSTEP_RETURN_IF_ERROR(compute());
    return backend.FinishCopy(id);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                            InTurn(3, {copy, compute, both}));
  Print("overlap", seconds[2] / std::max(seconds[0], seconds[1]),
        "the longer of copy and products");
  return absl::OkStatus();
}

// A dense network of equal sides, with its gradients, in memory of the device.
class Network {
 public:
  static absl::StatusOr<Network> Make(Bench& bench, int64_t examples,
                                      int64_t width) {
    Network network(bench.backend());
    for (worker::Tensor* tensor :
         {&network.in_, &network.hidden_, &network.out_}) {
      LOCKSTEP_ASSIGN_OR_RETURN(*tensor, bench.Random({examples, width}));
    }
    for (worker::Tensor* tensor :
         {&network.first_, &network.second_, &network.first_gradient_,
          &network.second_gradient_}) {
      LOCKSTEP_ASSIGN_OR_RETURN(*tensor, bench.Random({width, width}));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(network.bias_, bench.Random({width}));
    return network;
  }

  // Forward and backward, but for the gradient of the input; the output's
  // gradient is the output.
  absl::Status Pass() const {
    worker::ComputeBackend& b = backend_;
    for (const absl::Status& s :
         {b.MatMul(in_, first_, {}, hidden_), b.AddBias(bias_, hidden_),
          b.Relu(hidden_, hidden_), b.MatMul(hidden_, second_, {}, out_),
          b.MatMul(hidden_, out_, {.transpose_a = true}, second_gradient_),
          b.MatMul(out_, second_, {.transpose_b = true}, hidden_),
          b.BiasGradient(hidden_, bias_),
          b.MatMul(in_, hidden_, {.transpose_a = true}, first_gradient_)}) {
      LOCKSTEP_RETURN_IF_ERROR(s);
    }
    return absl::OkStatus();
  }

 private:
  explicit Network(worker::ComputeBackend& backend) : backend_(backend) {}

  worker::ComputeBackend& backend_;
  worker::Tensor in_, hidden_, out_, first_, second_, bias_;
  worker::Tensor first_gradient_, second_gradient_;
};

// The five products of a pass of a network of one hidden layer.
absl::Status Mlp() {
  LOCKSTEP_ASSIGN_OR_RETURN(Bench bench, MakeBench());
  bench.backend().set_precision(worker::Precision::kBfloat16);
  LOCKSTEP_ASSIGN_OR_RETURN(const Network network,
                            Network::Make(bench, sizes.side, sizes.side));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                            InTurn(3, {[&] { return network.Pass(); }}));
  const auto side = static_cast<double>(sizes.side);
  std::cout << "mlp: " << 5 * 2 * side * side * side / seconds[0] / 1e12
            << " TFLOP/s\n";
  return absl::OkStatus();
}

// Compares launches of a small pass with replays of their recording.
absl::Status Replay() {
  LOCKSTEP_ASSIGN_OR_RETURN(Bench bench, MakeBench());
  LOCKSTEP_ASSIGN_OR_RETURN(const Network network,
                            Network::Make(bench, sizes.examples, sizes.hidden));
  LOCKSTEP_RETURN_IF_ERROR(network.Pass());  // allocates
  worker::RecordingDevice& device = *bench.backend().recording_device();
  LOCKSTEP_RETURN_IF_ERROR(device.BeginRecording());
  LOCKSTEP_RETURN_IF_ERROR(network.Pass());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<worker::Recording> recording,
                            device.EndRecording());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                            InTurn(100, {[&] { return network.Pass(); },
                                         [&] { return recording->Replay(); }}));
  Print("replay", seconds[0] / seconds[1], "the speed of launches");
  return absl::OkStatus();
}

absl::Status Run(std::vector<std::string> names) {
  if (!names.empty() && names.front() == "--small") {
    sizes = kSmall;
    names.erase(names.begin());
  }
  const std::vector<std::pair<std::string, absl::Status (*)()>> rows = {
      {"gemm", Gemm},       {"kernels", Kernels}, {"pinned", Pinned},
      {"overlap", Overlap}, {"mlp", Mlp},         {"replay", Replay}};
  if (names.empty()) {
    for (const auto& [name, row] : rows) names.push_back(name);
  }
  for (const std::string& name : names) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) {
      return r.first == name;
    });
    if (row == rows.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rows are gemm, kernels, pinned, overlap, mlp and replay, got ",
          name));
    }
    LOCKSTEP_RETURN_IF_ERROR(row->second());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::benchmark

int main(int argc, char** argv) {
  const absl::Status status = lockstep::benchmark::Run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::cerr << "gpu_benchmark: " << status.message() << "\n";
  return 1;
}
