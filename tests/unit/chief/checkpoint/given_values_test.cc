#include "chief/checkpoint/given_values.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "common/checkpoint/files/posix_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;

bool Alive(int) { return true; }
bool Dead(int) { return false; }

std::vector<VariableSpec> Model() {
  VariableSpec given{.name = "w", .shape = {2}};
  given.initializer.kind = Initializer::Kind::kGiven;
  return {{.name = "drawn", .shape = {4}}, given};
}

absl::Span<const char> Bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(float)};
}

float Second(const SafetensorsReader& reader) {
  float value = 0;
  EXPECT_OK(reader.ReadAt("w", 4,
                          absl::MakeSpan(reinterpret_cast<char*>(&value), 4)));
  return value;
}

TEST(GivenValuesTest, OneWorkerIsAskedAndItsValuesAreTaken) {
  TempDir folder;
  GivenValues values(folder.path());
  EXPECT_TRUE(HasGivenValues(Model()));
  EXPECT_FALSE(values.IsWantedFrom(1, Alive));
  ASSERT_OK(values.Want(Model()));
  EXPECT_TRUE(values.IsWantedFrom(1, Alive));
  EXPECT_FALSE(values.IsWantedFrom(0, Alive));
  EXPECT_THAT(values.Write(0, 1, 0, Bytes({1, 2})),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(values.Write(1, 1, 4, Bytes({2})));
  EXPECT_EQ(*values.Take(), nullptr);
  ASSERT_OK(values.Write(1, 1, 0, Bytes({1})));
  const auto taken = values.Take();
  ASSERT_OK(taken.status());
  EXPECT_EQ(Second(**taken), 2);
  EXPECT_FALSE(values.IsWantedFrom(1, Alive));
}

TEST(GivenValuesTest, ARepeatedBlockDoesNotStandForAMissingOne) {
  TempDir folder;
  GivenValues values(folder.path());
  ASSERT_OK(values.Want(Model()));
  ASSERT_TRUE(values.IsWantedFrom(1, Alive));
  ASSERT_OK(values.Write(1, 1, 0, Bytes({1})));
  ASSERT_OK(values.Write(1, 1, 0, Bytes({1})));
  EXPECT_EQ(*values.Take(), nullptr);
  ASSERT_OK(values.Write(1, 1, 4, Bytes({2})));
  EXPECT_NE(*values.Take(), nullptr);
}

// Its blocks count twice, so that all bytes seem to have come.
TEST(GivenValuesTest, ASenderThatStartsAgainIsAskedUntilAllBytesHaveCome) {
  GivenValues values("");
  ASSERT_OK(values.Want(Model()));
  for (int start = 0; start < 3; ++start) {
    ASSERT_TRUE(values.IsWantedFrom(0, Alive)) << start;
    ASSERT_OK(values.Write(0, 1, 0, Bytes({1})));
    EXPECT_EQ(*values.Take(), nullptr);
  }
  ASSERT_OK(values.Write(0, 1, 4, Bytes({2})));
  EXPECT_FALSE(values.IsWantedFrom(0, Alive));
  EXPECT_EQ(Second(**values.Take()), 2);
}

TEST(GivenValuesTest, TheSuccessorOfADeadSenderBeginsAnew) {
  GivenValues values("");
  ASSERT_OK(values.Want(Model()));
  ASSERT_TRUE(values.IsWantedFrom(0, Alive));
  ASSERT_OK(values.Write(0, 1, 0, Bytes({1})));
  EXPECT_TRUE(values.IsWantedFrom(2, Dead));
  ASSERT_OK(values.Write(2, 1, 4, Bytes({6})));
  EXPECT_EQ(*values.Take(), nullptr);
  ASSERT_OK(values.Write(2, 1, 0, Bytes({5})));
  EXPECT_EQ(Second(**values.Take()), 6);
}

TEST(GivenValuesTest, BlockOutsideOfTheVariablesIsRefused) {
  GivenValues values("");
  ASSERT_OK(values.Want(Model()));
  ASSERT_TRUE(values.IsWantedFrom(0, Alive));
  for (const auto& [variable, offset] :
       {std::pair<size_t, uint64_t>{0, 0}, {2, 0}, {1, 8}, {1, ~uint64_t{0}}}) {
    EXPECT_THAT(values.Write(0, variable, offset, Bytes({1})),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << variable << " " << offset;
  }
}

// A chief that has collected {1, `second`}.
void Collect(const std::string& folder, float second) {
  GivenValues values(folder);
  ASSERT_OK(values.Want(Model()));
  ASSERT_TRUE(values.IsWantedFrom(0, Alive));
  ASSERT_OK(values.Write(0, 1, 0, Bytes({1, second})));
  ASSERT_NE(*values.Take(), nullptr);
}

// A killed chief leaves nothing there, and no stranger can exchange the values.
TEST(GivenValuesTest, WithoutADirectoryTheValuesHaveNoName) {
  TempDir folder;
  setenv("TMPDIR", folder.path().c_str(), 1);
  GivenValues values("");
  ASSERT_OK(values.Want(Model()));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  ASSERT_TRUE(values.IsWantedFrom(1, Alive));
  ASSERT_OK(values.Write(1, 1, 0, Bytes({1, 2})));
  const auto taken = values.Take();
  unsetenv("TMPDIR");
  ASSERT_OK(taken.status());
  ASSERT_NE(*taken, nullptr);
  EXPECT_EQ(Second(**taken), 2);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(GivenValuesTest, AFileThatTakesTheNameIsNotRead) {
  TempDir folder;
  GivenValues values(folder.path());
  ASSERT_OK(values.Want(Model()));
  ASSERT_TRUE(values.IsWantedFrom(1, Alive));
  ASSERT_OK(values.Write(1, 1, 0, Bytes({1, 2})));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::filesystem::remove(entry.path());
    ASSERT_OK(WriteWholeFile(entry.path().string(), "another chief's"));
  }
  const auto taken = values.Take();
  ASSERT_OK(taken.status());
  EXPECT_EQ(Second(**taken), 2);
}

TEST(GivenValuesTest, ALaterChiefFindsTheValuesIfTheyFit) {
  TempDir folder;
  Collect(folder.path(), 2);
  GivenValues later(folder.path());
  ASSERT_NE(later.TakeKept(Model()), nullptr);
  EXPECT_EQ(Second(*later.TakeKept(Model())), 2);
  std::vector<VariableSpec> other = Model();
  other[1].shape = {3};
  EXPECT_EQ(later.TakeKept(other), nullptr);
}

TEST(GivenValuesTest, ValuesOfAnEarlierRunAreNotThoseOfAnUnfinishedTransfer) {
  TempDir folder;
  Collect(folder.path(), 2);
  {
    GivenValues killed(folder.path());
    ASSERT_OK(killed.Want(Model()));
    ASSERT_TRUE(killed.IsWantedFrom(0, Alive));
    ASSERT_OK(killed.Write(0, 1, 0, Bytes({7})));
  }

  GivenValues successor(folder.path());
  EXPECT_EQ(successor.TakeKept(Model()), nullptr);
  ASSERT_OK(successor.Want(Model()));
  EXPECT_EQ(successor.TakeKept(Model()), nullptr);

  Collect(folder.path(), 8);
  EXPECT_EQ(Second(*GivenValues(folder.path()).TakeKept(Model())), 8);
}

// The workers of its run have registered after it began to collect.
TEST(GivenValuesTest, AChiefFindsTheValuesThatItHasSetAside) {
  TempDir folder;
  Collect(folder.path(), 2);
  GivenValues values(folder.path());
  ASSERT_OK(values.Want(Model()));
  const auto kept = values.TakeKept(Model());
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(Second(*kept), 2);
  // For its own successor.
  EXPECT_NE(GivenValues(folder.path()).TakeKept(Model()), nullptr);
}

TEST(GivenValuesTest, WhatAChiefHasSetAsideOutlivesADeadSender) {
  TempDir folder;
  Collect(folder.path(), 2);
  GivenValues values(folder.path());
  ASSERT_OK(values.Want(Model()));
  ASSERT_TRUE(values.IsWantedFrom(0, Alive));
  ASSERT_OK(values.Write(0, 1, 0, Bytes({7})));
  ASSERT_TRUE(values.IsWantedFrom(1, Dead));
  ASSERT_TRUE(values.IsWantedFrom(2, Dead));
  const auto kept = values.TakeKept(Model());
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(Second(*kept), 2);
}

TEST(GivenValuesTest, LeftOversOfAKilledChiefAreRemoved) {
  TempDir folder;
  {
    GivenValues killed(folder.path());
    ASSERT_OK(killed.Want(Model()));
    std::filesystem::copy(
        std::filesystem::directory_iterator(folder.path())->path(),
        folder.Join(".initial-1.safetensors"));
  }
  GivenValues values(folder.path());
  ASSERT_OK(values.Want(Model()));
  EXPECT_FALSE(std::filesystem::exists(folder.Join(".initial-1.safetensors")));
}

}  // namespace
}  // namespace lockstep::chief
