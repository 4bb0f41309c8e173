#ifndef LOCKSTEP_TESTS_BENCHMARK_HUGE_BUFFER_H_
#define LOCKSTEP_TESTS_BENCHMARK_HUGE_BUFFER_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/types/span.h"

namespace lockstep::benchmark {

// HugeBuffer is zeroed memory whose pages exist, in huge pages if the system
// provides them. Empty if there is not enough memory.
class HugeBuffer {
 public:
  explicit HugeBuffer(size_t size) : size_(RoundUp(size)) {
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      size_ = 0;
      return;
    }
    madvise(memory, size_, MADV_HUGEPAGE);
    memory_ = static_cast<std::byte*>(memory);
    std::memset(memory_, 0, size_);
  }
  ~HugeBuffer() {
    if (memory_ != nullptr) munmap(memory_, size_);
  }
  HugeBuffer(HugeBuffer&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}

  absl::Span<std::byte> bytes() const { return {memory_, size_}; }

 private:
  static size_t RoundUp(size_t size) {
    constexpr size_t kHugePage = size_t{2} << 20;
    return (size + kHugePage - 1) / kHugePage * kHugePage;
  }

  std::byte* memory_ = nullptr;
  size_t size_;
};

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_HUGE_BUFFER_H_
