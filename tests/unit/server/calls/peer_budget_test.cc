#include "server/calls/peer_budget.h"

#include <memory>
#include <optional>

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

TEST(PeerBudgetTest, PeerHoldsUpToTheLimit) {
  PeerBudget budget(100);
  auto first = budget.Take("a", 60);
  ASSERT_NE(first, nullptr);
  EXPECT_NE(budget.Take("a", 40), nullptr);  // gone at once

  EXPECT_EQ(budget.Take("a", 41), nullptr);
  EXPECT_NE(budget.Take("b", 100), nullptr);
}

TEST(PeerBudgetTest, WhatWasLetGoOfCanBeTakenAgain) {
  PeerBudget budget(100);
  auto first = budget.Take("a", 100);
  EXPECT_EQ(budget.Take("a", 1), nullptr);
  first.reset();

  EXPECT_NE(budget.Take("a", 100), nullptr);
}

TEST(PeerBudgetTest, LargerThanTheLimitIsHeldAlone) {
  PeerBudget budget(100);
  const auto large = budget.Take("a", 1000);
  ASSERT_NE(large, nullptr);

  EXPECT_EQ(budget.Take("a", 1), nullptr);
}

TEST(PeerBudgetTest, NothingIsNeverTooMuch) {
  PeerBudget budget(100);
  const auto all = budget.Take("a", 100);

  EXPECT_NE(budget.Take("a", 0), nullptr);
}

TEST(PeerBudgetTest, ShareMayOutliveTheBudget) {
  std::optional<PeerBudget> budget(100);
  auto share = budget->Take("a", 50);
  budget.reset();

  share.reset();
  EXPECT_EQ(share, nullptr);
}

}  // namespace
}  // namespace lockstep::server
