#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_MMA_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_MMA_H_

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tests/cuda_on_cpu/kernel_threads.h"

// Products by tensor cores, of the shapes that worker/compute/cuda uses: 16 x
// 16 sums over 8 TF32 or 16 bfloat16 numbers. As on a GPU, which lane has which
// element is the fragment's secret, all lanes of a warp make the same calls,
// and matrices start at multiples of 32 bytes with rows of multiples of 16
// bytes; as on no GPU, an operand that was not rounded to TF32 gives NaN.
namespace nvcuda::wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}  // namespace precision

namespace simulated {

inline constexpr int kLanes = 32;

// An element of a warp's matrix of so many rows and columns is element `index /
// 32` of lane `index % 32`, where `index` is that in the matrix by rows turned
// by a third, so that no lane has a row or a column.
template <int kRows, int kColumns>
struct Places {
  static constexpr int kCount = kRows * kColumns;
  static int IndexOf(int row, int column) {
    return ((row * kColumns + column) * 11 + kCount / 3) % kCount;
  }
  // The inverse of IndexOf(), found once.
  struct Place {
    uint8_t row;
    uint8_t column;
  };
  static const Place* All() {
    static const Places table;
    return table.places_;
  }

 private:
  Places() {
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        places_[IndexOf(row, column)] = {static_cast<uint8_t>(row),
                                         static_cast<uint8_t>(column)};
      }
    }
  }
  Place places_[kCount];
};

// What a lane has of a matrix.
template <int kRows, int kColumns>
struct Fragment {
  using Of = Places<kRows, kColumns>;
  enum : int { num_elements = Of::kCount / kLanes };
  float x[num_elements];

  // f(element, row, column)
  template <typename F>
  void ForEach(F f) {
    const int lane = static_cast<int>(lockstep::cuda_on_cpu::Lane());
    for (int i = 0; i < num_elements; ++i) {
      const auto& place = Of::All()[i * kLanes + lane];
      f(x[i], place.row, place.column);
    }
  }
};

// The process ends where a GPU would.
void CheckMatrix(const void* data, size_t stride);

inline uint64_t AddressOf(const void* data) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(data));
}

// Elements of all lanes' fragments, from their addresses.
template <int kRows, int kColumns>
float ElementOf(const uint64_t* lanes, int row, int column) {
  const int index = Places<kRows, kColumns>::IndexOf(row, column);
  const auto* fragment = reinterpret_cast<const Fragment<kRows, kColumns>*>(
      static_cast<uintptr_t>(lanes[index % kLanes]));
  return fragment->x[index / kLanes];
}

// An operand of a product over kDepth numbers.
template <int kDepth>
float Operand(float x) {
  constexpr uint32_t kLost = kDepth == 8 ? 0x1fffu : 0xffffu;
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  return (bits & kLost) == 0 ? x : std::numeric_limits<float>::quiet_NaN();
}

inline float ToFloat(float x) { return x; }
inline float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }

}  // namespace simulated

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
struct fragment;
template <int k, typename T, typename Layout>
struct fragment<matrix_a, 16, 16, k, T, Layout> : simulated::Fragment<16, k> {};
template <int k, typename T, typename Layout>
struct fragment<matrix_b, 16, 16, k, T, Layout> : simulated::Fragment<k, 16> {};
template <int k>
struct fragment<accumulator, 16, 16, k, float> : simulated::Fragment<16, 16> {};

// Rounds to the nearest number of 11 bits, halves away from zero.
inline float __float_to_tf32(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  if ((bits & 0x7f800000u) != 0x7f800000u) bits += 0x1000u;
  bits &= ~0x1fffu;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

template <typename Fragment>
void fill_fragment(Fragment& fragment, float value) {
  for (float& x : fragment.x) x = value;
}

template <typename Use, int k, typename T, typename Layout, typename Element>
void load_matrix_sync(fragment<Use, 16, 16, k, T, Layout>& out,
                      const Element* data, unsigned stride) {
  static_assert(k == (sizeof(Element) == sizeof(float) ? 8 : 16));
  simulated::CheckMatrix(data, stride * sizeof(Element));
  lockstep::cuda_on_cpu::ExchangeAll(0);
  out.ForEach([&](float& x, int row, int column) {
    x = simulated::ToFloat(std::is_same_v<Layout, row_major>
                               ? data[row * stride + column]
                               : data[column * stride + row]);
  });
}

template <int k>
void store_matrix_sync(float* data,
                       fragment<accumulator, 16, 16, k, float> sums,
                       unsigned stride, layout_t layout) {
  simulated::CheckMatrix(data, stride * sizeof(float));
  sums.ForEach([&](float x, int row, int column) {
    data[layout == mem_row_major ? row * stride + column
                                 : column * stride + row] = x;
  });
}

// out = a b + sums. A GPU adds in an order of its own, too.
template <int k, typename T, typename A, typename B>
void mma_sync(fragment<accumulator, 16, 16, k, float>& out,
              const fragment<matrix_a, 16, 16, k, T, A>& a,
              const fragment<matrix_b, 16, 16, k, T, B>& b,
              const fragment<accumulator, 16, 16, k, float>& sums) {
  using lockstep::cuda_on_cpu::ExchangeAll;
  using simulated::Operand;
  uint64_t of_a[simulated::kLanes];
  std::memcpy(of_a, ExchangeAll(simulated::AddressOf(&a)), sizeof(of_a));
  const uint64_t* of_b = ExchangeAll(simulated::AddressOf(&b));
  fragment<accumulator, 16, 16, k, float> result = sums;
  result.ForEach([&](float& x, int row, int column) {
    for (int i = 0; i < k; ++i) {
      x += Operand<k>(simulated::ElementOf<16, k>(of_a, row, i)) *
           Operand<k>(simulated::ElementOf<k, 16>(of_b, i, column));
    }
  });
  ExchangeAll(0);  // before another lane changes its operands
  out = result;
}

}  // namespace nvcuda::wmma

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_MMA_H_
