#include "tests/conformance/compute/device.h"

#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/conformance/compute/tape_backend.h"
#include "worker/compute/backend/kernel_backend.h"
#include "worker/compute/cpu/serial_device.h"
#include "worker/compute/registry.h"

namespace lockstep::testing {
namespace {

// Calls function(T{}) with the C++ type of the elements.
template <typename Function>
auto ForType(worker::ElementType type, Function function) {
  switch (type) {
    case worker::ElementType::kUint8:
      return function(uint8_t{});
    case worker::ElementType::kInt32:
      return function(int32_t{});
    case worker::ElementType::kFloat32:
      return function(float{});
    case worker::ElementType::kFloat64:
      break;
  }
  return function(double{});
}

// The CPU without its own loops: every operation as the kernels that a GPU
// runs, called one after the other.
class KernelsBackend final
    : public worker::KernelBackend<worker::cpu::SerialDevice> {
 public:
  KernelsBackend() : KernelBackend(worker::cpu::SerialDevice()) {}
  const char* name() const override { return "kernels"; }
};

absl::StatusOr<std::unique_ptr<worker::ComputeBackend>> Make(
    const std::string& name) {
  if (name == "kernels") return std::make_unique<KernelsBackend>();
  if (name == "tape") return std::make_unique<TapeBackend>();
  return worker::MakeBackend(name, {.threads = 1});
}

}  // namespace

bool NeedsGpu() { return std::getenv("LOCKSTEP_NEEDS_GPU") != nullptr; }

std::vector<std::string> ViableBackends() {
  std::vector<std::string> names;
  for (const char* name : {"cpu", "kernels", "cuda"}) {
    const bool needed = NeedsGpu() && name == std::string("cuda");
    if (needed || Make(name).ok()) names.emplace_back(name);
  }
  return names;
}

Device::Device(const std::string& backend_name) {
  auto backend = Make(backend_name);
  EXPECT_TRUE(backend.ok()) << backend.status();
  backend_ = *std::move(backend);
}

worker::Tensor Device::Put(worker::ElementType type, const worker::Shape& shape,
                           const std::vector<double>& values) {
  auto buffer = backend_->Allocate(values.size() * worker::ElementBytes(type));
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  const worker::Tensor tensor(type, shape, buffer->data());
  EXPECT_EQ(tensor.size(), static_cast<int64_t>(values.size()));
  buffers_.push_back(*std::move(buffer));
  ForType(type, [&]<typename T>(T) {
    std::vector<T> host(values.begin(), values.end());
    const absl::Status status = backend_->Upload(
        worker::Tensor::Of<T>(absl::MakeSpan(host), shape), tensor);
    EXPECT_TRUE(status.ok()) << status;
  });
  return tensor;
}

worker::ConstTensor Device::Indices(const std::vector<int32_t>& numbers,
                                    int64_t bound) {
  return Put(worker::ElementType::kInt32,
             {static_cast<int64_t>(numbers.size())},
             std::vector<double>(numbers.begin(), numbers.end()))
      .WithBound(bound);
}

worker::Tensor Device::Blank(worker::ElementType type,
                             const worker::Shape& shape) {
  const double filler = type == worker::ElementType::kUint8
                            ? 255
                            : std::numeric_limits<double>::quiet_NaN();
  const int64_t count = worker::CountElements(shape).value_or(0);
  return Put(type, shape, std::vector<double>(count, filler));
}

std::vector<double> Device::Get(const worker::ConstTensor& tensor) {
  return ForType(tensor.type(), [&]<typename T>(T) {
    std::vector<T> host(tensor.size());
    const absl::Status status = backend_->Download(
        tensor, worker::Tensor::Of<T>(absl::MakeSpan(host), tensor.shape()));
    EXPECT_TRUE(status.ok()) << status;
    return std::vector<double>(host.begin(), host.end());
  });
}

std::vector<double> RandomValues(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> values(count);
  for (double& value : values) {
    value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  }
  return values;
}

std::vector<double> RandomValues(const worker::Shape& shape, uint64_t seed) {
  return RandomValues(worker::CountElements(shape).value_or(0), seed);
}

}  // namespace lockstep::testing
