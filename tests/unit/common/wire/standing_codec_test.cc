#include "common/wire/standing_codec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;

TEST(StandingCodecTest, WorkersArriveAsTheyWere) {
  const std::vector<WorkerStanding> standings = {
      {1, 0}, {2, 77, /*input_ended=*/true}, {3, std::nullopt, true}};
  StandingMessages messages;

  FillStandings(standings, messages);

  const auto arrived = FromProto(messages);
  ASSERT_OK(arrived);
  EXPECT_EQ(*arrived, standings);
}

TEST(StandingCodecTest, IncarnationThatCannotBeIsRefused) {
  StandingMessages messages;
  messages.Add()->set_shut_out_above(~uint64_t{0});

  EXPECT_THAT(FromProto(messages),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("workers.shut_out_above")));
}

}  // namespace
}  // namespace lockstep
