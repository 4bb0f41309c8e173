#ifndef LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_DEVICE_H_
#define LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/tensor/tensor.h"

namespace lockstep::testing {

// True if LOCKSTEP_NEEDS_GPU is set: without a GPU tests then fail, where
// otherwise they leave it out.
bool NeedsGpu();

// The backends that this build has and this machine can run, and "kernels":
// what a GPU runs, on the CPU. A Device may also be "tape", a TapeBackend.
std::vector<std::string> ViableBackends();

// Device is a backend with tensors that live as long as it does, read and
// written as doubles with any element type. A failure fails the test.
class Device {
 public:
  explicit Device(const std::string& backend_name);

  worker::ComputeBackend& backend() { return *backend_; }

  // A tensor with these values, rounded to `type`.
  worker::Tensor Put(worker::ElementType type, const worker::Shape& shape,
                     const std::vector<double>& values);
  // Labels or ids, known to be in [0, bound).
  worker::ConstTensor Indices(const std::vector<int32_t>& numbers,
                              int64_t bound);
  // A tensor to write to, filled with NaN so that a gap shows.
  worker::Tensor Blank(worker::ElementType type, const worker::Shape& shape);
  std::vector<double> Get(const worker::ConstTensor& tensor);
  // Room for one number of an operation, and that number.
  worker::Tensor Number() { return Blank(worker::ElementType::kFloat64, {1}); }
  double NumberAt(const worker::Tensor& number) { return Get(number)[0]; }

 private:
  std::unique_ptr<worker::ComputeBackend> backend_;
  std::vector<worker::Buffer> buffers_;
};

// Numbers of both signs in [-1, 1), the same for the same seed everywhere.
std::vector<double> RandomValues(int64_t count, uint64_t seed);

// As many as the shape has elements.
std::vector<double> RandomValues(const worker::Shape& shape, uint64_t seed);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_DEVICE_H_
