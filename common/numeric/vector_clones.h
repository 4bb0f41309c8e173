#ifndef LOCKSTEP_COMMON_NUMERIC_VECTOR_CLONES_H_
#define LOCKSTEP_COMMON_NUMERIC_VECTOR_CLONES_H_

// What kernels need to be vectorised, for the .cc files that define them.

// GCC makes one more copy of each function that is so marked for processors
// with AVX2 and picks one when the program starts. Sanitizers are not up at
// that moment.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&            \
    !defined(__SANITIZE_THREAD__)
#define LOCKSTEP_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define LOCKSTEP_CLONES
#endif

// The iterations of the loop that follows do not depend on each other.
#if defined(__clang__)
// Clang warns of each loop that it then does not vectorise, as under
// sanitizers.
#define LOCKSTEP_INDEPENDENT
#else
#define LOCKSTEP_INDEPENDENT _Pragma("GCC ivdep")
#endif

#define LOCKSTEP_INLINE inline __attribute__((always_inline))

#endif  // LOCKSTEP_COMMON_NUMERIC_VECTOR_CLONES_H_
