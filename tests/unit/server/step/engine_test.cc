#include "server/step/engine.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

TEST(ShardAnswersTest, AppendedAnswersComeAfterThoseThatWereThere) {
  ShardAnswers answers;
  answers.pushes.push_back({1, {PushOutcome::kAccepted}, 5, {}});
  answers.takes.push_back({2, true, 1, {}});
  ShardAnswers more;
  more.pushes.push_back({3, {PushOutcome::kStale}, 6, {}});
  more.pushes.push_back({4, {}, 6, absl::InternalError("why")});
  more.takes.push_back({5, false, 0, {}});

  answers.Append(std::move(more));

  EXPECT_THAT(answers.pushes, ElementsAre(Field(&PushAnswer::ticket, 1),
                                          Field(&PushAnswer::ticket, 3),
                                          Field(&PushAnswer::ticket, 4)));
  EXPECT_THAT(answers.pushes[1].outcomes, ElementsAre(PushOutcome::kStale));
  EXPECT_EQ(answers.pushes[2].status, absl::InternalError("why"));
  EXPECT_THAT(answers.takes, ElementsAre(Field(&TakeAnswer::ticket, 2),
                                         Field(&TakeAnswer::ticket, 5)));
}

TEST(ShardAnswersTest, AppendingNothingChangesNothing) {
  ShardAnswers answers;
  answers.takes.push_back({2, true, 1, {}});

  answers.Append(ShardAnswers());

  EXPECT_TRUE(answers.pushes.empty());
  EXPECT_THAT(answers.takes, ElementsAre(Field(&TakeAnswer::ticket, 2)));
}

}  // namespace
}  // namespace lockstep::server
