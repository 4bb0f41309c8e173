#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_DEVICE_MEMORY_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_DEVICE_MEMORY_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace lockstep::cuda_on_cpu {

// The two ranges of addresses of all device memory. CUDA hands out addresses of
// the first one, which no thread of the host can ever touch; what runs on a
// device is given the address of the same byte in the second one.
class AddressSpace {
 public:
  static const AddressSpace& Get();

  bool IsDevice(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - outside_ < kBytes;
  }
  // The address on the device; others are returned as they are.
  template <typename T>
  T* Inside(T* address) const {
    if (!IsDevice(address)) return address;
    return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address) -
                                outside_ + inside_);
  }
  std::byte* outside(size_t offset) const {
    return reinterpret_cast<std::byte*>(outside_ + offset);
  }

  static constexpr size_t kBytes = size_t{64} << 30;

 private:
  AddressSpace();

  uintptr_t outside_;
  uintptr_t inside_;
};

// DeviceMemory is the memory of all devices. New memory is full of NaN, and
// ends at most 255 bytes before a page that faults; those bytes must not be
// written. Memory that was freed faults.
//
// Threads: not thread-safe. Errors: as cudaMalloc() and cudaFree().
class DeviceMemory {
 public:
  // `seed` decides where memory is: where some was freed, or elsewhere.
  void Configure(int devices, size_t bytes, uint64_t seed);

  cudaError_t Allocate(int device, size_t bytes, void** data);
  // Nothing of the device may use it any more.
  cudaError_t Free(void* data);

  // True if [data, data + bytes) is part of one allocation.
  bool Holds(const void* data, size_t bytes) const;
  // The device of the allocation that `data` is in; -1 if it is in none.
  int DeviceOf(const void* data) const;
  size_t allocated(int device) const { return allocated_[device]; }
  size_t bytes() const { return bytes_; }

 private:
  struct Block {
    int device;
    size_t bytes;
    size_t slot;    // offset of its first page
    size_t mapped;  // pages, and the one that faults
  };

  using Blocks = std::map<uintptr_t, Block>;  // by address

  size_t TakeSlot(size_t mapped);
  // The block that `data` is in, or at whose end it is.
  Blocks::const_iterator Find(const void* data) const;

  size_t bytes_ = 0;
  std::vector<size_t> allocated_;
  Blocks blocks_;
  std::multimap<size_t, size_t> free_slots_;  // by size
  size_t used_ = size_t{1} << 20;             // of the address space
  std::mt19937_64 random_;
};

// The words for a bad access of the host at this address; null if it is none
// of device memory. Safe in a signal handler.
const char* WordsOfFault(const void* address);

}  // namespace lockstep::cuda_on_cpu

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_DEVICE_MEMORY_H_
