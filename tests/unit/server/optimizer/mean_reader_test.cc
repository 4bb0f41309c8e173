#include "server/optimizer/mean_reader.h"

#include <cstddef>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

template <typename T>
ByteSlice Slice(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

template <typename T>
std::vector<T> Values(const std::byte* bytes, size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes, count * sizeof(T));
  return values;
}

TEST(MeanReaderTest, OneGradientIsReadInPlace) {
  const std::vector<float> values = {1, 2, 3};
  const ByteSlice slice = Slice(values);
  const GradientSlices gradient = {&slice, 1};
  MeanReader<float> reader({&gradient, 1}, 1);

  EXPECT_EQ(reader.Next(2), slice.data);
  EXPECT_EQ(reader.Next(1), slice.data + 2 * sizeof(float));
}

TEST(MeanReaderTest, MeanIsTheSumDivided) {
  const std::vector<double> a = {10, 1};
  const std::vector<double> b = {20, 2};
  const ByteSlice slices[] = {Slice(a), Slice(b)};
  const std::vector<GradientSlices> gradients = {{&slices[0], 1},
                                                 {&slices[1], 1}};
  MeanReader<double> reader(gradients, 2);

  EXPECT_THAT(Values<double>(reader.Next(2), 2), ElementsAre(15, 1.5));
}

TEST(MeanReaderTest, SumGoesInTheGivenOrder) {
  const std::vector<float> large = {1e8f};
  const std::vector<float> minus_large = {-1e8f};
  const std::vector<float> one = {1.0f};
  const ByteSlice slices[] = {Slice(large), Slice(minus_large), Slice(one)};
  const GradientSlices l = {&slices[0], 1};
  const GradientSlices m = {&slices[1], 1};
  const GradientSlices o = {&slices[2], 1};
  const std::vector<GradientSlices> exact = {l, m, o};
  const std::vector<GradientSlices> lossy = {l, o, m};

  EXPECT_THAT(Values<float>(MeanReader<float>(exact, 1).Next(1), 1),
              ElementsAre(1.0f));
  EXPECT_THAT(Values<float>(MeanReader<float>(lossy, 1).Next(1), 1),
              ElementsAre(0.0f));
}

TEST(MeanReaderTest, OneGradientMayBeDividedToo) {
  const std::vector<float> sum = {9, 30};
  const ByteSlice slice = Slice(sum);
  const GradientSlices gradient = {&slice, 1};
  MeanReader<float> reader({&gradient, 1}, 3);

  EXPECT_THAT(Values<float>(reader.Next(2), 2), ElementsAre(3, 10));
}

TEST(MeanReaderTest, ElementsMayStraddleSlices) {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {10, 20, 30};
  const std::byte* bytes = Slice(a).data;
  const std::vector<ByteSlice> torn = {
      {bytes, 1}, {bytes + 1, 6}, {bytes + 7, 5}};
  const ByteSlice whole = Slice(b);
  const std::vector<GradientSlices> gradients = {torn, {&whole, 1}};
  MeanReader<float> reader(gradients, 1);

  EXPECT_THAT(Values<float>(reader.Next(2), 2), ElementsAre(11, 22));
  EXPECT_THAT(Values<float>(reader.Next(1), 1), ElementsAre(33));
}

TEST(MeanReaderTest, FullBlocksFollowEachOther) {
  std::vector<float> values(2 * kBlockElements);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const ByteSlice slice = Slice(values);
  const std::vector<GradientSlices> gradients(3, GradientSlices(&slice, 1));
  MeanReader<float> reader(gradients, 3);

  reader.Next(kBlockElements);
  const std::byte* second = reader.Next(kBlockElements);

  const std::vector<float> mean = Values<float>(second, kBlockElements);
  EXPECT_EQ(mean.front(), 1024.0f);
  EXPECT_EQ(mean.back(), 2047.0f);
}

}  // namespace
}  // namespace lockstep
