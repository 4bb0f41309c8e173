#include "common/checkpoint/directory_owner.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DirectoryOwnerTest, AnotherJobIsRefusedAndToldWhose) {
  ScratchDirectory scratch;
  const auto owner = DirectoryOwner::Take(scratch.path(), "fashion-1");
  ASSERT_OK(owner);

  EXPECT_THAT(DirectoryOwner::Take(scratch.path(), "bible-2").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(scratch.path()), HasSubstr("fashion-1"),
                             HasSubstr("a directory of its own"))));
  EXPECT_THAT(
      DirectoryOwner::Take(scratch.path(), "bible-2").status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("fashion-1")));
}

TEST(DirectoryOwnerTest, ProcessesOfOneJobMayBothHaveIt) {
  ScratchDirectory scratch;
  const auto older = DirectoryOwner::Take(scratch.path(), "fashion-1");
  ASSERT_OK(older);

  EXPECT_OK(DirectoryOwner::Take(scratch.path(), "fashion-1"));
  EXPECT_THAT(DirectoryOwner::Take(scratch.path(), "bible-2").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(DirectoryOwnerTest, SecondProcessOfAJobHasItOnceTheFirstIsGone) {
  ScratchDirectory scratch;
  auto older = DirectoryOwner::Take(scratch.path(), "fashion-1");
  ASSERT_OK(older);
  auto newer = DirectoryOwner::Take(scratch.path(), "fashion-1");
  ASSERT_OK(newer);
  EXPECT_OK(newer->Hold());
  { const DirectoryOwner gone = *std::move(older); }

  EXPECT_OK(newer->Hold());

  EXPECT_THAT(
      DirectoryOwner::Take(scratch.path(), "bible-2").status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("fashion-1")));
  EXPECT_OK(newer->Hold());
}

TEST(DirectoryOwnerTest, JobThatCameInBetweenIsNamed) {
  ScratchDirectory scratch;
  auto older = DirectoryOwner::Take(scratch.path(), "fashion-1");
  ASSERT_OK(older);
  auto newer = DirectoryOwner::Take(scratch.path(), "fashion-1");
  ASSERT_OK(newer);
  { const DirectoryOwner gone = *std::move(older); }
  const auto other = DirectoryOwner::Take(scratch.path(), "bible-2");
  ASSERT_OK(other);

  EXPECT_THAT(newer->Hold(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr("job bible-2,")));
}

// Else the other process would take a start of its own job for another job.
TEST(DirectoryOwnerTest, AJobsIdIsThereWhileItsNextProcessTakesTheLock) {
  ScratchDirectory scratch;
  ASSERT_OK(DirectoryOwner::Take(scratch.path(), "fashion-1"));
  std::thread starts([&scratch] {
    for (int i = 0; i < 5000; ++i) {
      EXPECT_OK(DirectoryOwner::Take(scratch.path(), "fashion-1"));
    }
  });

  for (int i = 0; i < 5000; ++i) {
    EXPECT_OK(DirectoryOwner::Take(scratch.path(), "fashion-1"));
  }

  starts.join();
}

TEST(DirectoryOwnerTest, NextJobHasItOnceTheOneBeforeIsGone) {
  ScratchDirectory scratch;
  {
    auto owner = DirectoryOwner::Take(scratch.path(), "a-much-longer-id");
    ASSERT_OK(owner);
    const DirectoryOwner moved = *std::move(owner);
  }

  const auto next = DirectoryOwner::Take(scratch.path(), "bible-2");

  ASSERT_OK(next);
  EXPECT_THAT(DirectoryOwner::Take(scratch.path(), "other").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("job bible-2,")));
}

TEST(DirectoryOwnerTest, AJobThatIsAboutToEndIsWaitedFor) {
  ScratchDirectory scratch;
  auto owner = DirectoryOwner::Take(scratch.path(), "fashion-1");
  ASSERT_OK(owner);
  std::thread end([&owner] { const DirectoryOwner gone = *std::move(owner); });

  EXPECT_OK(
      DirectoryOwner::Take(scratch.path(), "bible-2", absl::Seconds(100)));

  end.join();
}

TEST(DirectoryOwnerTest, OwnerOfADirectoryIsReadWithoutTakingIt) {
  ScratchDirectory scratch;
  EXPECT_EQ(DirectoryOwner::Running(scratch.path()), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(scratch.path() + "/.owner"));
  EXPECT_FALSE(DirectoryOwner::IsMarked(scratch.path()));
  {
    const auto owner = DirectoryOwner::Take(scratch.path(), "fashion-1");
    ASSERT_OK(owner);
    EXPECT_EQ(DirectoryOwner::Running(scratch.path()), "fashion-1");
  }

  EXPECT_TRUE(DirectoryOwner::IsMarked(scratch.path()));
  EXPECT_EQ(DirectoryOwner::Running(scratch.path()), std::nullopt);
  EXPECT_OK(DirectoryOwner::Take(scratch.path(), "bible-2"));
}

TEST(DirectoryOwnerTest, MissingDirectoryIsMade) {
  ScratchDirectory scratch;
  const std::string directory = scratch.path() + "/a/b";

  const auto owner = DirectoryOwner::Take(directory, "fashion-1");

  ASSERT_OK(owner);
  EXPECT_TRUE(std::filesystem::is_directory(directory));
  EXPECT_THAT(DirectoryOwner::Take(directory, "bible-2").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(DirectoryOwnerTest, DirectoryThatWasRemovedIsMarkedAgain) {
  ScratchDirectory scratch;
  const std::string directory = scratch.path() + "/a";
  auto owner = DirectoryOwner::Take(directory, "fashion-1");
  ASSERT_OK(owner);
  EXPECT_FALSE(owner->IsGone());
  std::filesystem::remove_all(directory);
  EXPECT_TRUE(owner->IsGone());

  EXPECT_OK(owner->Hold());

  EXPECT_FALSE(owner->IsGone());
  EXPECT_EQ(DirectoryOwner::Running(directory), "fashion-1");
  EXPECT_THAT(
      DirectoryOwner::Take(directory, "bible-2").status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("fashion-1")));
}

TEST(DirectoryOwnerTest, JobThatTookTheDirectoryAfterItsRemovalIsNamed) {
  ScratchDirectory scratch;
  const std::string directory = scratch.path() + "/a";
  auto owner = DirectoryOwner::Take(directory, "fashion-1");
  ASSERT_OK(owner);
  std::filesystem::remove_all(directory);
  auto other = DirectoryOwner::Take(directory, "bible-2");
  ASSERT_OK(other);

  EXPECT_THAT(owner->Hold(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr("job bible-2,")));

  { const DirectoryOwner ended = *std::move(other); }
  EXPECT_OK(owner->Hold());
  EXPECT_EQ(DirectoryOwner::Running(directory), "fashion-1");
}

TEST(DirectoryOwnerTest, DirectoryThatIsAwayForAWhileStaysTheJobs) {
  ScratchDirectory scratch;
  const std::string directory = scratch.path() + "/a";
  const std::string aside = scratch.path() + "/aside";
  auto owner = DirectoryOwner::Take(directory, "fashion-1");
  ASSERT_OK(owner);
  std::filesystem::rename(directory, aside);
  std::ofstream(directory) << "in the way";

  EXPECT_OK(owner->Hold());

  EXPECT_EQ(DirectoryOwner::Running(aside), "fashion-1");
}

TEST(DirectoryOwnerTest, WhereNothingCanBeMadeNothingIsRefused) {
  ScratchDirectory scratch;
  std::ofstream(scratch.path() + "/file") << "in the way";

  EXPECT_OK(DirectoryOwner::Take(scratch.path() + "/file", "fashion-1"));
  EXPECT_OK(DirectoryOwner::Take(scratch.path() + "/file", "bible-2"));
}

}  // namespace
}  // namespace lockstep
