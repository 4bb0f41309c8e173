#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_KERNEL_ARGUMENTS_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_KERNEL_ARGUMENTS_H_

#include <cstddef>
#include <type_traits>
#include <utility>

#include "tests/cuda_on_cpu/device_memory.h"

// The pointers in the arguments of a kernel, found by their types: a functor is
// an aggregate of at most ten numbers, pointers and further aggregates.
namespace lockstep::cuda_on_cpu {
namespace arguments {

struct Anything {
  template <typename T>
  operator T() const;  // never defined
};

template <typename T, size_t... i>
constexpr bool IsMadeOf(std::index_sequence<i...>) {
  return requires { T{(static_cast<void>(i), Anything{})...}; };
}

// The number of members of an aggregate.
template <typename T, size_t n = 10>
constexpr size_t CountMembers() {
  if constexpr (n == 0 || IsMadeOf<T>(std::make_index_sequence<n>())) {
    return n;
  } else {
    return CountMembers<T, n - 1>();
  }
}

// Calls visit(member) for each member.
template <typename T, typename Visit>
void ForEachMember(T& t, Visit visit) {
  constexpr size_t kCount = CountMembers<T>();
  const auto all = [&](auto&... members) { (visit(members), ...); };
  if constexpr (kCount == 1) {
    auto& [a] = t;
    all(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = t;
    all(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = t;
    all(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = t;
    all(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = t;
    all(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = t;
    all(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = t;
    all(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = t;
    all(a, b, c, d, e, f, g, h);
  } else if constexpr (kCount == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = t;
    all(a, b, c, d, e, f, g, h, i);
  } else if constexpr (kCount == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = t;
    all(a, b, c, d, e, f, g, h, i, j);
  }
}

}  // namespace arguments

// Makes the pointers in `argument` those that the device uses. Returns false if
// one of them points to memory of the host.
template <typename T>
bool MakeInside(T& argument) {
  const AddressSpace& space = AddressSpace::Get();
  if constexpr (std::is_pointer_v<T>) {
    if (argument == nullptr) return true;
    const bool there = space.IsDevice(argument);
    argument = space.Inside(argument);
    return there;
  } else if constexpr (std::is_class_v<T>) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_aggregate_v<T>,
                  "kernels take numbers, pointers and aggregates of them");
    bool good = true;
    arguments::ForEachMember(
        argument, [&](auto& member) { good = MakeInside(member) && good; });
    return good;
  } else {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    return true;
  }
}

}  // namespace lockstep::cuda_on_cpu

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_KERNEL_ARGUMENTS_H_
