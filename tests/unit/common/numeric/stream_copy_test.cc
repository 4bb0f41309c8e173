#include "common/numeric/stream_copy.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAreArray;

TEST(StreamCopyTest, CopiesAnyLengthToAndFromAnyAddress) {
  constexpr size_t kSize = 400;
  for (size_t from : {0, 1, 4, 16, 63}) {
    for (size_t to = 0; to < 65; ++to) {
      for (size_t size : {0, 1, 15, 63, 64, 65, 127, 128, 200, 321}) {
        alignas(64) std::byte source[kSize];
        alignas(64) std::byte target[kSize] = {};
        std::vector<std::byte> expected(kSize);
        for (size_t i = 0; i < kSize; ++i) source[i] = std::byte(i + 1);
        for (size_t i = 0; i < size; ++i) expected[to + i] = source[from + i];

        StreamCopy(size, source + from, target + to);
        FinishStreaming();

        ASSERT_THAT(target, ElementsAreArray(expected));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
