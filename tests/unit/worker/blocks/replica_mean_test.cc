#include "worker/blocks/replica_mean.h"

#include <cstring>
#include <random>
#include <vector>

#include "common/collective/arithmetic.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kElements = 1000;

template <typename T>
T FromFloat(float value) {
  return static_cast<T>(value);
}
template <>
BFloat16 FromFloat(float value) {
  return ToBFloat16(value);
}
template <>
Float16 FromFloat(float value) {
  return ToFloat16(value);
}

template <typename T>
Bytes Drawn(std::mt19937& random) {
  std::normal_distribution<float> values(0, 3);
  std::vector<T> elements;
  for (size_t i = 0; i < kElements; ++i) {
    elements.push_back(FromFloat<T>(values(random)));
  }
  Bytes bytes(kElements * sizeof(T));
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

template <typename T>
void ExpectBitsOfSumInOrder(DType dtype, int replicas) {
  std::mt19937 random(7);
  std::vector<Bytes> gradients;
  std::vector<const std::byte*> terms;
  ReplicaMean mean;
  for (int r = 0; r < replicas; ++r) {
    gradients.push_back(Drawn<T>(random));
    mean.Add(dtype, gradients.back());
  }
  for (const Bytes& gradient : gradients) terms.push_back(gradient.data());
  Bytes expected(kElements * sizeof(T));
  SumInOrder(ElementTypeOf(dtype), kElements, terms, replicas, expected.data());

  Bytes stored(expected.size());
  EXPECT_TRUE(mean.Store(dtype, replicas, absl::MakeSpan(stored)));

  EXPECT_EQ(stored, expected) << static_cast<int>(dtype) << " x " << replicas;
}

TEST(ReplicaMeanTest, MeanHasTheBitsOfTheReplicasComputedTogether) {
  for (const int replicas : {1, 2, 3, 7}) {
    ExpectBitsOfSumInOrder<float>(DType::kFloat32, replicas);
    ExpectBitsOfSumInOrder<double>(DType::kFloat64, replicas);
    ExpectBitsOfSumInOrder<BFloat16>(DType::kBFloat16, replicas);
    ExpectBitsOfSumInOrder<Float16>(DType::kFloat16, replicas);
  }
}

float MeanOf(ReplicaMean& mean, int replicas) {
  float result = -1;
  mean.Store(DType::kFloat32, replicas,
             {reinterpret_cast<std::byte*>(&result), sizeof(result)});
  return result;
}

void AddTo(ReplicaMean& mean, float gradient) {
  mean.Add(DType::kFloat32,
           {reinterpret_cast<const std::byte*>(&gradient), sizeof(gradient)});
}

TEST(ReplicaMeanTest, AbsentGradientCountsAsZeros) {
  ReplicaMean mean;
  AddTo(mean, 6);
  AddTo(mean, 3);

  EXPECT_EQ(MeanOf(mean, 4), 2.25F);
}

TEST(ReplicaMeanTest, MeanOfNoGradientIsAbsent) {
  ReplicaMean mean;
  AddTo(mean, 6);
  mean.Reset();

  float untouched = 5;
  EXPECT_FALSE(mean.Store(
      DType::kFloat32, 2,
      {reinterpret_cast<std::byte*>(&untouched), sizeof(untouched)}));
  EXPECT_EQ(untouched, 5);
}

TEST(ReplicaMeanTest, GradientsOfTheMeanBeforeAreForgotten) {
  ReplicaMean mean;
  AddTo(mean, 100);
  mean.Reset();
  AddTo(mean, 2);
  AddTo(mean, 4);

  EXPECT_EQ(MeanOf(mean, 2), 3);
}

}  // namespace
}  // namespace lockstep::worker
