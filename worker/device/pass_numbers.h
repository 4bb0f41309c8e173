#ifndef LOCKSTEP_WORKER_DEVICE_PASS_NUMBERS_H_
#define LOCKSTEP_WORKER_DEVICE_PASS_NUMBERS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/tensor/buffer.h"
#include "worker/compute/tensor/tensor.h"

namespace lockstep::worker {

// PassNumbers are the few float64 results of a pass, such as its loss, in the
// backend's memory, with a copy in ordinary memory. The copy is pinned, so that
// a number can arrive while operations go on.
//
// Threads: as the backend.
// Borrows: the backend.
// Errors:  those of the backend.
class PassNumbers {
 public:
  PassNumbers(size_t count, ComputeBackend& backend);
  ~PassNumbers();
  PassNumbers(const PassNumbers&) = delete;
  PassNumbers& operator=(const PassNumbers&) = delete;

  // Must be called before each pass. Allocates memory the first time, and waits
  // for copies that the pass before has left under way.
  //
  //   kResourceExhausted  the device has too little memory
  absl::Status Prepare();

  // Valid once Prepare() has succeeded, and in the same place from then on: all
  // numbers as [count], and number `index` as [1].
  const Tensor& all() const { return there_; }
  Tensor At(size_t index) const;

  // Starts to copy a number to ordinary memory, as the operations called so far
  // leave it.
  absl::Status StartDownload(size_t index);
  // Waits for the number's copy, if one is under way.
  absl::Status Finish(size_t index);
  // Copies all numbers, and waits.
  absl::Status Download();

  // The value that arrived last.
  double value(size_t index) const { return here_[index]; }

 private:
  struct Free {
    void operator()(double* memory) const;
  };
  Tensor Here(size_t first, size_t count) const;

  const size_t count_;
  ComputeBackend& backend_;
  const std::unique_ptr<double[], Free> here_;
  Buffer pin_;
  Scratch memory_;
  Tensor there_;
  std::vector<std::optional<CopyId>> copies_;  // under way, by number
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DEVICE_PASS_NUMBERS_H_
