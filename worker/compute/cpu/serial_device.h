#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_SERIAL_DEVICE_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_SERIAL_DEVICE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/cpu/gemm.h"
#include "worker/compute/kernels/strided_gemm.h"

namespace lockstep::worker::cpu {

// SerialGroup is a Group of one thread (worker/compute/kernels/rows.h). Sums
// run in eight lanes, so that the compiler can use vector instructions without
// being allowed to reorder.
struct SerialGroup {
  template <typename T, typename F>
  void Map(int64_t n, T* out, F f) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(i);
  }

  template <typename T, typename F>
  T Sum(int64_t n, F f) {
    constexpr int64_t kLanes = 8;
    T lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
    }
    for (; i < n; ++i) lanes[0] += f(i);
    T sum = 0;
    for (T lane : lanes) sum += lane;
    return sum;
  }

  template <typename T, typename F>
  T Max(int64_t n, F f) {
    T largest = -std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, f(i));
    return largest;
  }

  bool Leads() const { return true; }
};

// SerialDevice is a Device (worker/compute/backend/kernel_backend.h) of plain
// loops and OpenBLAS, on memory of the process.
//
// Threads: as ComputeBackend.
class SerialDevice {
 public:
  static constexpr bool kUsesOrdinaryMemory = true;
  static constexpr bool kHasOwnLoops = false;
  static constexpr bool kHasFusedAttention = false;

  //   kResourceExhausted  not enough memory, or more than 1 TiB at once
  static absl::StatusOr<Buffer> Allocate(size_t bytes);
  static absl::StatusOr<Buffer> Pin(absl::Span<std::byte>) { return Buffer(); }

  static absl::Status Copy(const char*, const void* from, void* to,
                           size_t bytes) {
    if (bytes > 0) std::memmove(to, from, bytes);
    return absl::OkStatus();
  }
  // Copies are complete when they have been started.
  static absl::StatusOr<CopyId> StartCopy(const char*, const void* from,
                                          void* to, size_t bytes) {
    if (bytes > 0) std::memmove(to, from, bytes);
    return CopyId{0};
  }
  static absl::Status UseCopy(CopyId) { return absl::OkStatus(); }
  static absl::StatusOr<bool> CopyIsDone(CopyId) { return true; }
  static absl::Status FinishCopy(CopyId) { return absl::OkStatus(); }

  template <typename F>
  absl::Status ForEach(const char*, int64_t n, const F& f) {
    auto* const target = f.Target();
    for (int64_t i = 0; i < n; ++i) target[i] = f.Value(i);
    return absl::OkStatus();
  }

  template <typename F>
  absl::Status Grid(const char*, int64_t rows, int64_t n, const F& f) {
    auto* target = f.Target();
    for (int64_t row = 0; row < rows; ++row, target += n) {
      for (int64_t column = 0; column < n; ++column) {
        target[column] = f.Value(row, column);
      }
    }
    return absl::OkStatus();
  }

  template <typename F>
  absl::Status Rows(const char*, int64_t rows, const F& f) {
    SerialGroup group;
    for (int64_t row = 0; row < rows; ++row) f(group, row);
    return absl::OkStatus();
  }

  // One float32 sum over a million rows would lose digits: where most summands
  // are equal, all its additions round to the same side. A few rows are added
  // in T, as fast as T allows, and these sums in float64.
  template <typename T, typename F>
  absl::Status SumColumns(const char*, int64_t rows, int64_t n, const F& f,
                          T* out) {
    constexpr int64_t kColumns = 256;
    constexpr int64_t kRows = 16;
    std::array<T, kColumns> part;
    std::array<double, kColumns> sums;
    for (int64_t first = 0; first < n; first += kColumns) {
      const int64_t width = std::min(kColumns, n - first);
      std::fill_n(sums.begin(), width, 0);
      for (int64_t begin = 0; begin < rows; begin += kRows) {
        const int64_t end = std::min(begin + kRows, rows);
        std::fill_n(part.begin(), width, T{0});
        for (int64_t row = begin; row < end; ++row) {
          for (int64_t i = 0; i < width; ++i) part[i] += f(row, first + i);
        }
        for (int64_t i = 0; i < width; ++i) sums[i] += part[i];
      }
      for (int64_t i = 0; i < width; ++i) {
        out[first + i] = static_cast<T>(sums[i]);
      }
    }
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status Gemm(const char*, const StridedGemm& gemm, const T* a,
                    const T* b, T* out) {
    cpu::Gemm(gemm, a, b, out);
    return absl::OkStatus();
  }
};

}  // namespace lockstep::worker::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_SERIAL_DEVICE_H_
