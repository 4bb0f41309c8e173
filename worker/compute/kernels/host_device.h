#ifndef LOCKSTEP_WORKER_COMPUTE_KERNELS_HOST_DEVICE_H_
#define LOCKSTEP_WORKER_COMPUTE_KERNELS_HOST_DEVICE_H_

// The headers of this folder have the arithmetic of one element, row or column
// of each operation, once for every device: nvcc compiles them into kernels,
// and the CPU backend calls the same functions in a loop. So a test on the CPU
// tests a GPU's arithmetic, all but the loop around it. They need no library,
// which keeps nvcc quick.
#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_HOST_DEVICE_H_
