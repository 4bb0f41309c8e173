#include "server/update/mean_reader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "common/numeric/denormals.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
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
  const GradientSlices gradient = {{&slice, 1}};
  MeanReader<float> reader({&gradient, 1}, 1);

  EXPECT_EQ(reader.Next(2), slice.data);
  EXPECT_EQ(reader.Next(1), slice.data + 2 * sizeof(float));
}

TEST(MeanReaderTest, MeanIsTheSumDivided) {
  const std::vector<double> a = {10, 1};
  const std::vector<double> b = {20, 2};
  const ByteSlice slices[] = {Slice(a), Slice(b)};
  const std::vector<GradientSlices> gradients = {{{&slices[0], 1}},
                                                 {{&slices[1], 1}}};
  MeanReader<double> reader(gradients, 2);

  EXPECT_THAT(Values<double>(reader.Next(2), 2), ElementsAre(15, 1.5));
}

TEST(MeanReaderTest, SumGoesInTheOrderOfATree) {
  const std::vector<float> terms[] = {{1e8f}, {1}, {-1e8f}, {1}, {3}};
  std::vector<ByteSlice> slices;
  for (const std::vector<float>& term : terms) slices.push_back(Slice(term));
  std::vector<GradientSlices> gradients;
  for (const ByteSlice& slice : slices) gradients.push_back({{&slice, 1}});
  const int tree[] = {0, 1, 0, 2, 1};  // ((a + b) + (c + d)) + e

  EXPECT_THAT(Values<float>(MeanReader<float>(gradients, 1, tree).Next(1), 1),
              ElementsAre(3));
  EXPECT_THAT(Values<float>(MeanReader<float>(gradients, 2, tree).Next(1), 1),
              ElementsAre(1.5f));
  EXPECT_THAT(Values<float>(MeanReader<float>(gradients, 1).Next(1), 1),
              ElementsAre(4));
}

TEST(MeanReaderTest, SumGoesInTheGivenOrder) {
  const std::vector<float> large = {1e8f};
  const std::vector<float> minus_large = {-1e8f};
  const std::vector<float> one = {1.0f};
  const ByteSlice slices[] = {Slice(large), Slice(minus_large), Slice(one)};
  const GradientSlices l = {{&slices[0], 1}};
  const GradientSlices m = {{&slices[1], 1}};
  const GradientSlices o = {{&slices[2], 1}};
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
  const GradientSlices gradient = {{&slice, 1}};
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
  const std::vector<GradientSlices> gradients = {{torn}, {{&whole, 1}}};
  MeanReader<float> reader(gradients, 1);

  EXPECT_THAT(Values<float>(reader.Next(2), 2), ElementsAre(11, 22));
  EXPECT_THAT(Values<float>(reader.Next(1), 1), ElementsAre(33));
}

TEST(MeanReaderTest, FullBlocksFollowEachOther) {
  std::vector<float> values(2 * kBlockElements);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const ByteSlice slice = Slice(values);
  const std::vector<GradientSlices> gradients(3, {{&slice, 1}});
  MeanReader<float> reader(gradients, 3);

  reader.Next(kBlockElements);
  const std::byte* second = reader.Next(kBlockElements);

  const std::vector<float> mean = Values<float>(second, kBlockElements);
  EXPECT_EQ(mean.front(), float{kBlockElements});
  EXPECT_EQ(mean.back(), float{2 * kBlockElements - 1});
  EXPECT_TRUE(reader.all_finite());
}

TEST(MeanReaderTest, WhatIsNotFiniteIsRememberedHoweverManyAreSummed) {
  const std::vector<float> good(2 * kBlockElements, 1);
  std::vector<float> bad = good;
  bad[5] = HUGE_VALF;
  const ByteSlice slices[] = {Slice(good), Slice(bad)};
  for (size_t count : {1, 2, 3}) {
    for (size_t at = 0; at < count; ++at) {
      std::vector<GradientSlices> gradients(count, {{&slices[0], 1}});
      gradients[at] = {{&slices[1], 1}};
      MeanReader<float> reader(gradients, static_cast<float>(count));
      reader.Next(kBlockElements);
      reader.Next(kBlockElements);
      EXPECT_FALSE(reader.all_finite()) << at << " of " << count;
    }
  }
}

// Gradients of one part, each as bfloat16 and as the floats that it stands
// for, in slices of random lengths that begin at any address.
class PackedGradients {
 public:
  PackedGradients(int workers, size_t count) {
    for (int worker = 0; worker < workers; ++worker) {
      std::vector<uint16_t> bits(count);
      for (uint16_t& b : bits) b = static_cast<uint16_t>(generator_());
      // The widest range whose sums stay finite.
      for (uint16_t& b : bits) b &= 0xbfffu;
      bits[0] = 0x0001;  // the smallest subnormal
      std::vector<float> floats(count);
      for (size_t i = 0; i < count; ++i) {
        floats[i] = std::bit_cast<float>(uint32_t{bits[i]} << 16);
      }
      packed_.push_back(Tear(Slice(bits)));
      floats_.push_back(Tear(Slice(floats)));
    }
  }
  std::vector<GradientSlices> Floats() const {
    return View(floats_, GradientType::kVariable);
  }
  std::vector<GradientSlices> Packed() const {
    return View(packed_, GradientType::kBFloat16);
  }

 private:
  static std::vector<GradientSlices> View(
      const std::vector<std::vector<ByteSlice>>& all, GradientType type) {
    std::vector<GradientSlices> gradients;
    for (const auto& slices : all) gradients.push_back({slices, type});
    return gradients;
  }
  std::vector<ByteSlice> Tear(const ByteSlice& whole) {
    std::vector<ByteSlice> slices;
    for (size_t at = 0; at < whole.size;) {
      const size_t size =
          std::min<size_t>(generator_() % 2999, whole.size - at);
      auto& copy = copies_.emplace_back(size + 1);
      std::memcpy(copy.data() + 1, whole.data + at, size);
      slices.push_back({copy.data() + 1, size});
      at += size;
    }
    return slices;
  }

  std::mt19937 generator_{7};
  std::deque<std::vector<std::byte>> copies_;
  std::vector<std::vector<ByteSlice>> packed_;
  std::vector<std::vector<ByteSlice>> floats_;
};

std::vector<float> ReadAll(absl::Span<const GradientSlices> gradients,
                           size_t count) {
  MeanReader<float> reader(gradients, static_cast<float>(gradients.size()));
  std::vector<float> all;
  while (all.size() < count) {
    const size_t block = std::min(kBlockElements, count - all.size());
    const std::vector<float> values = Values<float>(reader.Next(block), block);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(MeanReaderTest, BFloat16GivesTheBitsOfTheFloatsThatItStandsFor) {
  constexpr size_t kCount = 2 * kBlockElements + 77;
  for (const int workers : {1, 2, 5}) {
    const PackedGradients gradients(workers, kCount);

    const std::vector<float> packed = ReadAll(gradients.Packed(), kCount);
    const std::vector<float> floats = ReadAll(gradients.Floats(), kCount);

    EXPECT_EQ(std::memcmp(packed.data(), floats.data(), 4 * kCount), 0)
        << workers;
  }
}

TEST(MeanReaderTest, WorkersMaySendDifferentTypes) {
  constexpr size_t kCount = kBlockElements + 1;
  const PackedGradients gradients(3, kCount);
  std::vector<GradientSlices> mixed = gradients.Packed();
  mixed[1] = gradients.Floats()[1];

  EXPECT_EQ(ReadAll(mixed, kCount), ReadAll(gradients.Floats(), kCount));
}

TEST(MeanReaderTest, SubnormalBFloat16IsFlushedLikeTheFloat) {
  const PackedGradients gradients(2, 5);
  ScopedFlushDenormals flush;

  const std::vector<float> packed = ReadAll(gradients.Packed(), 5);
  const std::vector<float> floats = ReadAll(gradients.Floats(), 5);

  EXPECT_EQ(std::bit_cast<uint32_t>(packed[0]), 0u);
  EXPECT_EQ(std::memcmp(packed.data(), floats.data(), 20), 0);
}

}  // namespace
}  // namespace lockstep::server
