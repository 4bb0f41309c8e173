#ifndef LOCKSTEP_WORKER_COMPUTE_TENSOR_BUFFER_H_
#define LOCKSTEP_WORKER_COMPUTE_TENSOR_BUFFER_H_

#include <cstddef>
#include <memory>

namespace lockstep::worker {

// Buffer owns memory that a backend allocated, on the host or a device; an
// empty one owns nothing. Tensors refer to the memory and must not outlive it.
//
// Threads: a value that can only be moved; the memory is not guarded.
// Units:   bytes.
class Buffer {
 public:
  using Release = void (*)(void*);

  Buffer() = default;
  // Takes ownership of `data`, of `bytes` bytes, which `release` frees.
  Buffer(void* data, size_t bytes, Release release)
      : data_(data, release), bytes_(bytes) {}

  void* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<void, Release> data_{nullptr, [](void*) {}};
  size_t bytes_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_TENSOR_BUFFER_H_
