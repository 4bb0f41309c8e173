#include "server/calls/lent_calls.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class LentCallsTest : public ::testing::Test {
 protected:
  static absl::Time At(int second) { return absl::FromUnixSeconds(second); }

  std::shared_ptr<const void> Add(const std::string& name, int first_part,
                                  int num_parts, int second) {
    return calls_->Add(first_part, num_parts, At(second),
                       [this, name] { broken_.push_back(name); });
  }

  std::vector<std::string> broken_;
  std::shared_ptr<LentCalls> calls_ = LentCalls::Create();
};

TEST_F(LentCallsTest, CallsThatLendAPartForLongAreBrokenOffOnce) {
  const auto first = Add("first", 0, 2, 1);
  const auto second = Add("second", 1, 1, 2);
  const auto third = Add("third", 1, 5, 3);

  EXPECT_EQ(calls_->TakeBack({1}, At(3)), 2);
  EXPECT_THAT(broken_, UnorderedElementsAre("first", "second"));
  EXPECT_EQ(calls_->TakeBack({1}, At(3)), 0);
}

TEST_F(LentCallsTest, CallsThatLendOtherPartsGoOn) {
  const auto before = Add("before", 0, 3, 1);
  const auto behind = Add("behind", 4, 3, 1);
  const auto both = Add("both", 2, 2, 1);

  EXPECT_EQ(calls_->TakeBack({}, At(9)), 0);
  EXPECT_EQ(calls_->TakeBack({3, 7}, At(9)), 1);

  EXPECT_THAT(broken_, ElementsAre("both"));
}

TEST_F(LentCallsTest, AllCallsCanBeBrokenOff) {
  const auto first = Add("first", 0, 2, 1);
  const auto second = Add("second", 4, 3, 2);

  EXPECT_EQ(calls_->TakeBackAll(), 2);
  EXPECT_EQ(calls_->TakeBackAll(), 0);

  EXPECT_THAT(broken_, UnorderedElementsAre("first", "second"));
}

TEST_F(LentCallsTest, WhatHasBeenSentIsForgotten) {
  auto sent = Add("sent", 0, 1, 1);
  auto copy = sent;
  sent.reset();
  EXPECT_EQ(calls_->TakeBack({0}, At(1)), 0);
  copy.reset();

  EXPECT_EQ(calls_->TakeBack({0}, At(9)), 0);
  EXPECT_THAT(broken_, IsEmpty());
}

TEST_F(LentCallsTest, SlicesMayOutliveTheirServer) {
  auto call = Add("call", 0, 1, 1);
  calls_.reset();
  call.reset();

  EXPECT_THAT(broken_, IsEmpty());
}

// As where gRPC lets go of an answer while it is told to end the call.
TEST_F(LentCallsTest, ACallMayEndWhileItIsBrokenOff) {
  std::shared_ptr<const void> call;
  call = calls_->Add(0, 1, At(1), [&] { call.reset(); });

  EXPECT_EQ(calls_->TakeBack({0}, At(2)), 1);
  EXPECT_EQ(calls_->TakeBack({0}, At(2)), 0);
}

TEST_F(LentCallsTest, PartsOfAWireNeedNotBeThere) {
  const auto call = Add("call", 2147483647, 2147483647, 1);

  EXPECT_EQ(calls_->TakeBack({0, 2147483646}, At(2)), 0);
}

}  // namespace
}  // namespace lockstep::server
