// Sessions with a table.

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/worker/session/session_fixture.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"
#include "worker/session/session.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A job with a table and two variables, of which a step uses what it looks up.
class SessionTableTest : public SessionFixture {
 protected:
  void SetUp() override {
    const std::string path = job_.directory().Join("tf_config");
    std::ofstream(path) << job_.TfConfigOf("worker", 0);
    auto session = Session::Join(
        {.tf_config = path},
        {{{.name = "t",
           .shape = {10, 2},
           .initializer = {.a = 3},
           .row_cut = RowCut::kMod},
          {}},
         {{.name = "w", .shape = {2}}, BytesOf(given_)},
         {{.name = "m", .shape = {2}, .buffer = true}, BytesOf(given_)}});
    ASSERT_THAT(session, IsOk());
    session_ = *std::move(session);
  }

  void TearDown() override {
    session_.reset();
    chief_->chief().RequestStop("the test is over");
  }

  // Returns true with a step at hand for which no row was chosen.
  bool Next() {
    while (true) {
      SessionStep step;
      const auto turn = session_->Next(absl::Seconds(1), step);
      if (!turn.ok() || *turn == Session::Turn::kEnded) return false;
      if (*turn == Session::Turn::kRows) session_->Pull().IgnoreError();
      if (*turn == Session::Turn::kStep) return true;
    }
  }
  std::vector<float> Floats(absl::Span<const std::byte> bytes) {
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::copy(bytes.begin(), bytes.end(),
              reinterpret_cast<std::byte*>(floats.data()));
    return floats;
  }

  std::unique_ptr<LocalChief> chief_ = std::make_unique<LocalChief>(job_);
  decltype(StartServer(std::declval<LocalJob&>())) server_ = StartServer(job_);
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTableTest, RowsMayBeChosenUntilTheFirstGradientIsHandedIn) {
  ASSERT_TRUE(Next());
  EXPECT_THAT(Floats(session_->value(0)), ElementsAre());
  ASSERT_OK(session_->ChooseRows(0, {7}));
  ASSERT_OK(session_->PullRows());
  EXPECT_THAT(Floats(session_->value(0)), ElementsAre(3, 3));
  ASSERT_OK(session_->ChooseRows(0, {9, 2, 9}));
  ASSERT_OK(session_->PullRows());
  EXPECT_THAT(session_->rows(0), ElementsAre(2, 9));
  EXPECT_THAT(Floats(session_->value(0)), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(session_->ChooseRows(1, {0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(session_->ChooseRows(0, {10}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const std::vector<float> ones = {1, 1, 1, 1};
  std::memcpy(session_->gradient(0).data(), ones.data(), 16);
  // No gradient is sent yet: those of variables with larger indices come first.
  ASSERT_OK(session_->Ready(0));
  EXPECT_THAT(session_->ChooseRows(0, {1}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(session_->PullRows(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("before the first gradient")));
  ASSERT_OK(session_->Finish(1, 8));
  EXPECT_THAT(session_->ChooseRows(0, {1}),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  ASSERT_TRUE(Next());
  ASSERT_OK(session_->ChooseRows(0, {1, 2, 9}));
  ASSERT_OK(session_->PullRows());
  EXPECT_THAT(Floats(session_->value(0)),
              ElementsAre(3, 3, 2.9f, 2.9f, 2.9f, 2.9f));
}

TEST_F(SessionTableTest, ATableForWhichNoRowIsChosenHasNoneInTheStep) {
  ASSERT_TRUE(Next());
  ASSERT_OK(session_->ChooseRows(0, {7}));
  ASSERT_OK(session_->PullRows());
  const std::vector<float> ones = {1, 1};
  std::memcpy(session_->gradient(0).data(), ones.data(), 8);
  ASSERT_OK(session_->Ready(0));
  ASSERT_OK(session_->Finish(1, 8));

  ASSERT_TRUE(Next());
  EXPECT_THAT(session_->rows(0), ElementsAre());
  ASSERT_OK(session_->Ready(0));
  ASSERT_OK(session_->Finish(1, 8));

  ASSERT_TRUE(Next());
  ASSERT_OK(session_->ChooseRows(0, {7}));
  ASSERT_OK(session_->PullRows());
  EXPECT_THAT(Floats(session_->value(0)), ElementsAre(2.9f, 2.9f));
}

// Gradients are sent to the rows of the last pull.
TEST_F(SessionTableTest, NoGradientIsHandedInBeforeNewRowsArePulled) {
  ASSERT_TRUE(Next());
  ASSERT_OK(session_->ChooseRows(0, {1, 2, 9}));
  ASSERT_OK(session_->PullRows());
  ASSERT_OK(session_->ChooseRows(0, {3, 5}));
  const std::vector<float> ones = {1, 1, 1, 1};
  std::memcpy(session_->gradient(0).data(), ones.data(), 16);
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("call PullRows()"));
  EXPECT_THAT(session_->Ready(0), refused);
  EXPECT_THAT(session_->Absent(1), refused);
  EXPECT_THAT(session_->Finish(1, 8), refused);
  ASSERT_OK(session_->PullRows());
  ASSERT_OK(session_->Ready(0));
  ASSERT_OK(session_->Finish(1, 8));

  ASSERT_TRUE(Next());
  ASSERT_OK(session_->ChooseRows(0, {2, 3, 5, 9}));
  ASSERT_OK(session_->PullRows());
  EXPECT_THAT(Floats(session_->value(0)),
              ElementsAre(3, 3, 2.9f, 2.9f, 2.9f, 2.9f, 3, 3));
}

TEST_F(SessionTableTest, AVariableThatIsNoTableHasNoRows) {
  ASSERT_TRUE(Next());
  ASSERT_OK(session_->ChooseRows(0, {7}));
  ASSERT_OK(session_->PullRows());
  EXPECT_THAT(session_->rows(0), ElementsAre(7));
  EXPECT_THAT(session_->rows(1), ElementsAre());
  EXPECT_THAT(session_->rows(2), ElementsAre());
}

TEST_F(SessionTableTest, WhatWasTakenIsPulledAnewWithTheNextStep) {
  ASSERT_TRUE(Next());
  const std::byte* const taken = session_->value(1).data();
  ASSERT_OK(session_->TakeValue(1));
  EXPECT_THAT(session_->TakeValue(0),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK(session_->ChooseRows(0, {7}));
  ASSERT_OK(session_->PullRows());
  EXPECT_NE(session_->value(1).data(), taken);
  ASSERT_OK(session_->Finish(1, 8));

  ASSERT_TRUE(Next());
  EXPECT_THAT(Floats(session_->value(1)), ElementsAre(1, -2));
}

TEST_F(SessionTableTest, BuffersMoveByTheMeanOfTheChanges) {
  ASSERT_TRUE(Next());
  const std::vector<float> change = {0.5, -1};
  std::memcpy(session_->gradient(2).data(), change.data(), 8);
  ASSERT_OK(session_->Ready(2));
  ASSERT_OK(session_->Finish(1, 8));
  ASSERT_TRUE(Next());
  EXPECT_THAT(Floats(session_->value(2)), ElementsAre(0.5, -1));
  EXPECT_THAT(Floats(session_->value(1)), ElementsAre(1, -2));
}

TEST_F(SessionTableTest, FiguresAreChecked) {
  EXPECT_OK(session_->Report({"norm", 1}));
  EXPECT_THAT(session_->Report({"", 1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep::worker
