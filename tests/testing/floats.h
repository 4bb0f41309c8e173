#ifndef LOCKSTEP_TESTS_TESTING_FLOATS_H_
#define LOCKSTEP_TESTS_TESTING_FLOATS_H_

#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace lockstep::testing {

inline std::vector<float> Floats(absl::Span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// `values` must fill `bytes`.
inline void SetFloats(absl::Span<std::byte> bytes,
                      const std::vector<float>& values) {
  ASSERT_EQ(bytes.size(), values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_FLOATS_H_
