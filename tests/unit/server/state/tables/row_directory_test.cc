#include "server/state/tables/row_directory.h"

#include <limits>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class RowDirectoryTest : public ::testing::Test {
 protected:
  explicit RowDirectoryTest(int64_t rows = 4)
      : memory_(RowDirectory::Size(rows) / sizeof(int64_t)) {}

  absl::StatusOr<std::unique_ptr<RowDirectory>> TryOpen() {
    return RowDirectory::Open({reinterpret_cast<std::byte*>(memory_.data()),
                               memory_.size() * sizeof(int64_t)});
  }
  std::unique_ptr<RowDirectory> Open() {
    auto directory = TryOpen();
    EXPECT_OK(directory);
    return *std::move(directory);
  }

  std::vector<int64_t> memory_;
};

TEST_F(RowDirectoryTest, RowsAreGivenOutInTurn) {
  auto directory = Open();
  EXPECT_EQ(directory->capacity(), 4);
  EXPECT_EQ(directory->size(), 0);
  EXPECT_EQ(directory->Find(7), std::nullopt);

  directory->Add(7);
  directory->Add(0);
  directory->Add(std::numeric_limits<int64_t>::max());

  EXPECT_EQ(directory->Find(7), 0);
  EXPECT_EQ(directory->Find(0), 1);
  EXPECT_EQ(directory->Find(std::numeric_limits<int64_t>::max()), 2);
  EXPECT_EQ(directory->size(), 3);
}

TEST_F(RowDirectoryTest, ARowHasItsKeyWhetherItIsFreshOrKept) {
  auto directory = Open();
  for (int64_t key : {7, 0}) directory->Add(key);
  directory->Keep(0);
  EXPECT_EQ(directory->KeyAt(0), 7);
  EXPECT_EQ(directory->KeyAt(1), 0);
}

TEST_F(RowDirectoryTest, AFullOneIsFoundAgain) {
  {
    auto directory = Open();
    for (int64_t key : {40, 10, 30, 20}) directory->Add(key);
    directory->Keep(2);
    directory->Keep(0);
  }
  auto again = Open();
  EXPECT_EQ(again->size(), again->capacity());
  EXPECT_EQ(again->Find(20), 3);
  EXPECT_THAT(again->Kept(), ElementsAre(Pair(30, 2), Pair(40, 0)));
}

TEST_F(RowDirectoryTest, OnlyRowsThatWereGivenOutAreKept) {
  auto directory = Open();
  directory->Add(5);
  for (int64_t row : {int64_t{-1}, int64_t{1}, int64_t{1} << 60}) {
    directory->Keep(row);
  }
  EXPECT_THAT(directory->Kept(), IsEmpty());
  directory->Keep(0);
  directory->Keep(0);
  EXPECT_THAT(directory->Kept(), ElementsAre(Pair(5, 0)));
}

TEST_F(RowDirectoryTest, AClearedOneIsAsNew) {
  auto directory = Open();
  directory->Add(5);
  directory->Keep(0);
  directory->Clear();
  EXPECT_EQ(directory->Find(5), std::nullopt);
  directory->Add(6);
  EXPECT_THAT(directory->Kept(), IsEmpty());
  EXPECT_EQ(Open()->Find(6), 0);
}

TEST_F(RowDirectoryTest, DamageIsNamed) {
  for (int64_t size : {int64_t{-1}, int64_t{5}, int64_t{1} << 60}) {
    memory_[0] = size;
    EXPECT_THAT(TryOpen(), StatusIs(absl::StatusCode::kDataLoss,
                                    HasSubstr("rows of at most 4")));
  }
  memory_ = {2, 9, ~int64_t{9}, 0, 0};
  EXPECT_THAT(TryOpen(), StatusIs(absl::StatusCode::kDataLoss,
                                  HasSubstr("both of key 9")));
}

class RowDirectoryCrashTest : public RowDirectoryTest {
 protected:
  static constexpr int64_t kRows = 300;
  RowDirectoryCrashTest() : RowDirectoryTest(kRows) {}

  void ExpectSame(const RowDirectory& directory) const {
    ASSERT_EQ(directory.size(), static_cast<int64_t>(rows_.size()));
    for (const auto& [key, row] : rows_) EXPECT_EQ(directory.Find(key), row);
    size_t kept = 0;
    for (const auto& [key, row] : directory.Kept()) {
      EXPECT_EQ(rows_.at(key), row);
      kept += kept_.count(row);
    }
    EXPECT_EQ(kept, kept_.size());
    EXPECT_EQ(directory.Kept().size(), kept_.size());
  }

  // What the directory should hold.
  std::unordered_map<int64_t, int64_t> rows_;
  std::unordered_set<int64_t> kept_;
};

// A process that is killed leaves the list as it was before one of its stores.
TEST_F(RowDirectoryCrashTest, IsAsAMapWhateverWasBeingWritten) {
  std::mt19937_64 random(1);
  auto directory = Open();
  while (directory->size() < kRows) {
    const auto key = static_cast<int64_t>(random() % 1000);
    const int64_t row = directory->size();
    if (random() % 3 == 0 && row > 0) {
      const auto old = static_cast<int64_t>(random() % row);
      directory->Keep(old);
      kept_.insert(old);
    } else if (!directory->Find(key).has_value()) {
      // Killed between the stores of Add(): the key, but not the count.
      if (random() % 2 == 0) {
        memory_[1 + row] = ~key;
        directory = Open();
        ExpectSame(*directory);
        if (random() % 2 == 0) continue;  // another key comes first
      }
      directory->Add(key);
      rows_[key] = row;
    }
    if (random() % 8 == 0) directory = Open();
    if (random() % 8 == 0) ExpectSame(*directory);
  }
  ExpectSame(*Open());
}

}  // namespace
}  // namespace lockstep::server
