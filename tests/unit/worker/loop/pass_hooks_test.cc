#include "worker/loop/pass_hooks.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;

TEST(PassHooksTest, EmptyHooksHearNothingAndWantEverything) {
  const PassHooks hooks;

  hooks.Report(3);

  EXPECT_THAT(hooks.CheckWanted(), IsOk());
}

TEST(PassHooksTest, ReportsReachTheHook) {
  std::vector<size_t> reported;
  const PassHooks hooks{
      .on_gradient = [&](size_t variable) { reported.push_back(variable); }};

  hooks.Report(3);
  hooks.Report(0);

  EXPECT_THAT(reported, ElementsAre(3, 0));
}

TEST(PassHooksTest, UnwantedPassIsAborted) {
  bool unwanted = false;
  const PassHooks hooks{.unwanted = [&] { return unwanted; }};

  EXPECT_THAT(hooks.CheckWanted(), IsOk());
  unwanted = true;

  EXPECT_THAT(hooks.CheckWanted(), StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace lockstep
