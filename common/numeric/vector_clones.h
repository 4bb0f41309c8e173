#ifndef LOCKSTEP_COMMON_NUMERIC_VECTOR_CLONES_H_
#define LOCKSTEP_COMMON_NUMERIC_VECTOR_CLONES_H_

// Macros for vectorised kernels, for the .cc files that define them.

// GCC adds a copy of each marked function for processors with AVX2, and the
// program picks one when it starts. That choice runs before sanitizers are
// initialised, so they get no copies.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&            \
    !defined(__SANITIZE_THREAD__)
#define LOCKSTEP_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define LOCKSTEP_CLONES
#endif

// Asserts that the iterations of the following loop are independent.
#if defined(__clang__)
// Clang warns about each marked loop that it does not vectorise, which happens
// under sanitizers.
#define LOCKSTEP_INDEPENDENT
#else
#define LOCKSTEP_INDEPENDENT _Pragma("GCC ivdep")
#endif

#define LOCKSTEP_INLINE inline __attribute__((always_inline))

#endif  // LOCKSTEP_COMMON_NUMERIC_VECTOR_CLONES_H_
