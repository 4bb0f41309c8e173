#ifndef LOCKSTEP_COMMON_NUMERIC_DENORMALS_H_
#define LOCKSTEP_COMMON_NUMERIC_DENORMALS_H_

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace lockstep {

// ScopedFlushDenormals makes float32 and float64 arithmetic of this thread
// treat subnormal operands and results as zeros of their sign during its
// lifetime, as TensorFlow's kernels do.
//
// The compiler may move arithmetic across its constructor or destructor. Code
// in its scope must therefore call a function of another source file for the
// arithmetic.
//
// Threads: acts on the thread that constructs it, which must also destroy it.
class ScopedFlushDenormals {
 public:
  ScopedFlushDenormals() : saved_(Read()) { Write(saved_ | kFlushBits); }
  ~ScopedFlushDenormals() { Write(saved_); }
  ScopedFlushDenormals(const ScopedFlushDenormals&) = delete;
  ScopedFlushDenormals& operator=(const ScopedFlushDenormals&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr uint64_t kFlushBits = 0x8040;  // MXCSR: FTZ and DAZ
  static uint64_t Read() { return _mm_getcsr(); }
  static void Write(uint64_t bits) {
    _mm_setcsr(static_cast<unsigned int>(bits));
  }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlushBits = uint64_t{1} << 24;  // FPCR: FZ
  static uint64_t Read() {
    uint64_t bits;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
  }
  static void Write(uint64_t bits) {
    asm volatile("msr fpcr, %0" : : "r"(bits) : "memory");
  }
#else
#error "Say here how this processor flushes subnormal numbers to zero."
#endif

  const uint64_t saved_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_DENORMALS_H_
