// Children of a process that holds parts of a checkpoint's directory.

#include <optional>
#include <utility>

#include "common/checkpoint/aside_directory.h"
#include "common/checkpoint/directory_owner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/paused_child.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"

namespace lockstep {
namespace {

using ::lockstep::testing::PausedChild;
using ::testing::IsEmpty;

TEST(DirectoryOwnerTest, AForkedChildDoesNotHoldTheDirectory) {
  ScratchDirectory scratch;
  std::optional<DirectoryOwner> owner;
  {
    auto taken = DirectoryOwner::Take(scratch.path(), "fashion-1");
    ASSERT_OK(taken);
    owner.emplace(*std::move(taken));
  }
  const PausedChild child;
  owner.reset();

  EXPECT_EQ(DirectoryOwner::Running(scratch.path()), std::nullopt);
  EXPECT_OK(DirectoryOwner::Take(scratch.path(), "bible-2"));
}

TEST(AsideDirectoryTest, AForkedChildDoesNotKeepItFromTheSweep) {
  ScratchDirectory scratch;
  std::optional<AsideDirectory> aside;
  {
    auto created = AsideDirectory::Create(scratch.path(), 7);
    ASSERT_OK(created);
    aside.emplace(*std::move(created));
  }
  const PausedChild child;
  // As a killed process leaves it: the name is there, the descriptor is not.
  ASSERT_OK(aside->MoveTo(scratch / ".tmp-step-00000007-0"));
  aside.reset();

  ASSERT_OK(RemoveStaleAsides(scratch.path()));

  EXPECT_THAT(scratch.Names(), IsEmpty());
}

}  // namespace
}  // namespace lockstep
