#include "common/checkpoint/aside_directory.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(AsideDirectoryTest, EachHasItsOwnName) {
  ScratchDirectory scratch;

  auto first = AsideDirectory::Create(scratch.path(), 7);
  auto second = AsideDirectory::Create(scratch.path(), 7);

  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_NE(first->path(), second->path());
  EXPECT_THAT(scratch.Names(),
              AllOf(SizeIs(2), Each(StartsWith(".tmp-step-00000007-"))));
}

TEST(AsideDirectoryTest, DestroyedOneLeavesNothing) {
  ScratchDirectory scratch;
  {
    auto aside = AsideDirectory::Create(scratch.path(), 7);
    ASSERT_OK(aside);
    WriteText(aside->path() + "/f", "x");
    const AsideDirectory moved = *std::move(aside);
    EXPECT_TRUE(fs::exists(moved.path() + "/f"));
  }

  EXPECT_THAT(scratch.Names(), IsEmpty());
}

TEST(AsideDirectoryTest, MovedOneStays) {
  ScratchDirectory scratch;
  {
    auto aside = AsideDirectory::Create(scratch.path(), 7);
    ASSERT_OK(aside);
    WriteText(aside->path() + "/f", "x");
    ASSERT_OK(aside->MoveTo(scratch / "target"));
  }

  EXPECT_THAT(scratch.Names(), ElementsAre("target"));
  EXPECT_EQ(ReadText(scratch / "target" + "/f"), "x");
}

TEST(AsideDirectoryTest, FailedMoveLeavesItAsideAndTheTargetAlone) {
  ScratchDirectory scratch;
  fs::create_directory(scratch / "target");
  WriteText(scratch / "target" + "/f", "kept");
  std::optional<AsideDirectory> aside;
  {
    auto created = AsideDirectory::Create(scratch.path(), 7);
    ASSERT_OK(created);
    aside.emplace(*std::move(created));
  }

  const absl::Status refused = aside->MoveTo(scratch / "target");

  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.message()), HasSubstr(scratch / "target"));
  EXPECT_TRUE(fs::exists(aside->path()));
  aside.reset();
  EXPECT_THAT(scratch.Names(), ElementsAre("target"));
  EXPECT_EQ(ReadText(scratch / "target" + "/f"), "kept");
}

TEST(AsideDirectoryTest, MissingParentIsAnErrorWithItsReason) {
  ScratchDirectory scratch;

  EXPECT_THAT(AsideDirectory::Create(scratch / "none", 7),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("No such file")));
}

TEST(AsideDirectoryTest, SweepRemovesWhatIsLeftAndSparesWhatIsAlive) {
  ScratchDirectory scratch;
  fs::create_directory(scratch / ".tmp-step-00000003-0");
  WriteText(scratch / ".tmp-step-00000003-0" + "/model.safetensors", "half");
  fs::create_directory(scratch / "step-00000002");
  fs::create_directory(scratch / ".other");
  auto alive = AsideDirectory::Create(scratch.path(), 4);
  ASSERT_OK(alive);

  ASSERT_OK(RemoveStaleAsides(scratch.path()));

  EXPECT_THAT(scratch.Names(),
              ElementsAre(".other", StartsWith(".tmp-step-00000004-"),
                          "step-00000002"));
}

TEST(AsideDirectoryTest, OwnerOfARemovedOneCannotMoveItNorAnyOther) {
  ScratchDirectory scratch;
  fs::create_directory(scratch / "step-00000002");
  auto hung = AsideDirectory::Create(scratch.path(), 4);
  ASSERT_OK(hung);
  WriteText(hung->path() + "/f", "of lost steps");

  ASSERT_OK(RemoveAllAsides(scratch.path()));
  EXPECT_THAT(scratch.Names(), ElementsAre("step-00000002"));
  auto successor = AsideDirectory::Create(scratch.path(), 4);
  ASSERT_OK(successor);

  EXPECT_THAT(hung->MoveTo(scratch / "step-00000004"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(fs::exists(scratch / "step-00000004"));
  EXPECT_OK(successor->MoveTo(scratch / "step-00000004"));
}

TEST(AsideDirectoryTest, SweepOfAMissingDirectoryHasNothingToDo) {
  ScratchDirectory scratch;

  EXPECT_OK(RemoveStaleAsides(scratch / "none"));
  EXPECT_OK(RemoveAllAsides(scratch / "none"));
}

}  // namespace
}  // namespace lockstep
