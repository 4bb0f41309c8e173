#include "worker/memory/parameter_memory.h"

#include <cstdint>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

const std::vector<VariableSpec> kVariables = {
    {"a", {3}, DType::kFloat32, {}},
    {"b", {2, 2}, DType::kFloat64, {}},
    {"c", {}, DType::kFloat32, {}},
};

TEST(ParameterMemoryTest, EveryVariableIsAlignedAndOfItsSize) {
  const ParameterMemory memory = *ParameterMemory::Make(kVariables);

  EXPECT_EQ(memory.value(0).size(), 12u);
  EXPECT_EQ(memory.value(1).size(), 32u);
  EXPECT_EQ(memory.gradient(2).size(), 4u);
  for (size_t i = 0; i < kVariables.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.value(i).data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.gradient(i).data()) % 64, 0u);
  }
}

TEST(ParameterMemoryTest, VariablesDoNotOverlap) {
  const ParameterMemory memory = *ParameterMemory::Make(kVariables);

  for (size_t i = 0; i < kVariables.size(); ++i) {
    std::memset(memory.value(i).data(), static_cast<int>(i) + 1,
                memory.value(i).size());
    std::memset(memory.gradient(i).data(), static_cast<int>(i) + 11,
                memory.gradient(i).size());
  }

  for (size_t i = 0; i < kVariables.size(); ++i) {
    for (std::byte b : memory.value(i)) EXPECT_EQ(int(b), int(i) + 1);
    for (std::byte b : memory.gradient(i)) EXPECT_EQ(int(b), int(i) + 11);
  }
}

TEST(ParameterMemoryTest, SharedGradientsAreWhereTheOffsetsSay) {
  const ParameterMemory memory =
      *ParameterMemory::Make(kVariables, ParameterMemory::Gradients::kShared);
  ASSERT_NE(memory.shared_gradients(), nullptr);
  auto peer = PeerMemory::Open(memory.shared_gradients()->file(),
                               PeerMemory::Require::kSealed);
  ASSERT_OK(peer);

  for (size_t i = 0; i < kVariables.size(); ++i) {
    std::memset(memory.gradient(i).data(), static_cast<int>(i) + 1,
                memory.gradient(i).size());
  }

  for (size_t i = 0; i < kVariables.size(); ++i) {
    const size_t size = memory.gradient(i).size();
    ASSERT_TRUE((*peer)->Holds(memory.shared_offset(i), size));
    EXPECT_EQ(std::memcmp((*peer)->bytes().data() + memory.shared_offset(i),
                          memory.gradient(i).data(), size),
              0);
  }
}

TEST(ParameterMemoryTest, TakenValuesStayUntilTheNextAreTaken) {
  ParameterMemory memory = *ParameterMemory::Make(kVariables);
  const absl::Span<std::byte> untouched = memory.value(0);
  const absl::Span<std::byte> taken = memory.value(1);
  std::memset(taken.data(), 1, taken.size());

  ASSERT_OK(memory.TakeValue(1));
  const absl::Span<std::byte> next = memory.value(1);
  std::memset(next.data(), 2, next.size());

  EXPECT_NE(next.data(), taken.data());
  EXPECT_EQ(next.size(), taken.size());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(next.data()) % 64, 0u);
  for (const std::byte b : taken) EXPECT_EQ(int(b), 1);
  EXPECT_EQ(memory.value(0).data(), untouched.data());
  EXPECT_EQ(memory.times_taken(0), 0);
  EXPECT_EQ(memory.times_taken(1), 1);

  ASSERT_OK(memory.TakeValue(1));
  EXPECT_EQ(memory.value(1).data(), taken.data());
  for (const std::byte b : next) EXPECT_EQ(int(b), 2);
}

TEST(ParameterMemoryTest, OnlyValuesOfVariablesThatAreNoTablesCanBeTaken) {
  ParameterMemory memory = *ParameterMemory::Make(
      {{"t", {4, 2}, DType::kFloat32, {}, RowCut::kMod}});
  EXPECT_THAT(memory.TakeValue(0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("variable 0 is a table")));
  EXPECT_THAT(memory.TakeValue(1), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("is not")));
}

TEST(ParameterMemoryTest, PrivateGradientsAreNotShared) {
  const ParameterMemory memory =
      *ParameterMemory::Make(kVariables, ParameterMemory::Gradients::kPrivate);

  EXPECT_EQ(memory.shared_gradients(), nullptr);
  EXPECT_EQ(memory.gradient(1).size(), 32u);
}

TEST(ParameterMemoryTest, MoreThanTheHostHasIsRefused) {
  const int64_t huge = int64_t{1} << 50;
  EXPECT_THAT(ParameterMemory::Make({{"huge", {huge}, DType::kFloat32, {}}}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("this host has")));
}

// Together they would be of 0 bytes.
TEST(ParameterMemoryTest, SumOfSizesDoesNotOverflow) {
  const VariableSpec quarter = {"w", {1 << 30, 1 << 26}, DType::kFloat64, {}};
  EXPECT_THAT(ParameterMemory::Make(std::vector<VariableSpec>(32, quarter)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2^60")));
}

TEST(ParameterMemoryTest, ShapesThatCannotBeAreRefused) {
  const int64_t huge = int64_t{1} << 40;
  const std::vector<std::vector<int64_t>> shapes = {
      {0}, {-1}, {huge, huge}, {2, -3}};
  for (const std::vector<int64_t>& shape : shapes) {
    EXPECT_THAT(ParameterMemory::Make({{"w", shape, DType::kFloat32, {}}}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("variable \"w\"")));
  }
  EXPECT_THAT(
      ParameterMemory::Make({{"t", {}, DType::kFloat32, {}, RowCut::kMod}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("table \"t\"")));
}

// A table that no machine could hold.
TEST(ParameterMemoryTest, OfATableOnlyChosenRowsAreThere) {
  ParameterMemory memory = *ParameterMemory::Make(
      {{"t", {int64_t{1} << 40, 2}, DType::kFloat32, {}, RowCut::kMod},
       {"b", {3}, DType::kFloat32, {}}});
  EXPECT_TRUE(memory.value(0).empty());

  ASSERT_TRUE(memory.ChooseRows(0, {int64_t{1} << 39, 7, 7}).ok());

  EXPECT_EQ(memory.rows(0).ids, (std::vector<int64_t>{7, int64_t{1} << 39}));
  EXPECT_EQ(memory.value(0).size(), 16u);
  EXPECT_EQ(memory.gradient(0).size(), 16u);
  EXPECT_EQ(memory.value(1).size(), 12u);
}

TEST(ParameterMemoryTest, RowsThatATableDoesNotHaveAreRefused) {
  ParameterMemory memory =
      *ParameterMemory::Make({{"t", {4, 2}, DType::kFloat32, {}, RowCut::kDiv},
                              {"b", {3}, DType::kFloat32, {}}});
  ASSERT_TRUE(memory.ChooseRows(0, {3}).ok());
  EXPECT_FALSE(memory.ChooseRows(0, {1, 4}).ok());
  EXPECT_FALSE(memory.ChooseRows(0, {-1}).ok());
  EXPECT_FALSE(memory.ChooseRows(1, {0}).ok());
  EXPECT_FALSE(memory.ChooseRows(2, {0}).ok());
  EXPECT_EQ(memory.rows(0).ids, std::vector<int64_t>{3});
}

TEST(ParameterMemoryTest, SumOfRowsIsThereUntilRowsAreChosen) {
  ParameterMemory memory = *ParameterMemory::Make(
      {{"t", {4, 2}, DType::kFloat32, {}, RowCut::kDiv}});
  ASSERT_TRUE(memory.ChooseRows(0, {3}).ok());
  EXPECT_EQ(memory.row_sum(0), nullptr);

  memory.SetRowSum(0, {.ids = {1, 3},
                       .gradients = std::vector<std::byte>(16),
                       .counts = {1, 2}});

  ASSERT_NE(memory.row_sum(0), nullptr);
  EXPECT_EQ(memory.row_sum(0)->ids, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(memory.rows(0).ids, std::vector<int64_t>{3});
  ASSERT_TRUE(memory.ChooseRows(0, {2}).ok());
  EXPECT_EQ(memory.row_sum(0), nullptr);
}

TEST(ParameterMemoryTest, AGrowingTableHasAnyKeys) {
  ParameterMemory memory = *ParameterMemory::Make(
      {{"t", {4, 2}, DType::kFloat32, {}, RowCut::kKey}});
  ASSERT_TRUE(memory.ChooseRows(0, {int64_t{1} << 62, 3}).ok());
  EXPECT_EQ(memory.rows(0).ids, (std::vector<int64_t>{3, int64_t{1} << 62}));
  EXPECT_FALSE(memory.ChooseRows(0, {-1}).ok());
}

TEST(ParameterMemoryTest, GradientsOfAnotherComputationAreBesideTheSameValues) {
  const ParameterMemory memory = *ParameterMemory::Make(kVariables);
  const absl::StatusOr<ParameterMemory> other = memory.WithOwnGradients();

  ASSERT_OK(other);
  for (size_t i = 0; i < kVariables.size(); ++i) {
    EXPECT_EQ(other->value(i).data(), memory.value(i).data());
    EXPECT_NE(other->gradient(i).data(), memory.gradient(i).data());
    EXPECT_EQ(other->gradient(i).size(), memory.gradient(i).size());
    EXPECT_EQ(other->dtype(i), kVariables[i].dtype);
  }
}

}  // namespace
}  // namespace lockstep::worker
