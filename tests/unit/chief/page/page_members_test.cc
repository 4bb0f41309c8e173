#include "chief/page/page_members.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PageMembersTest, MembersWithoutReportsHaveALine) {
  PageContents contents;
  contents.status.members = {
      {.task = "ps 0", .state = MemberState::kMissing},
      {.task = "worker 0", .state = MemberState::kMissing}};
  EXPECT_THAT(RenderServers(contents),
              AllOf(HasSubstr("ps 0"), HasSubstr("not heard yet")));
  EXPECT_THAT(RenderWorkers(contents, 10),
              AllOf(HasSubstr("worker 0"), Not(HasSubstr("ps 0"))));
}

TEST(PageMembersTest, AJobWithoutMembersHasNoTables) {
  EXPECT_EQ(RenderServers({}), "");
  EXPECT_EQ(RenderWorkers({}, 10), "");
}

TEST(PageMembersTest, ABackupIsAWorkerWhosePassesCountSeldom) {
  PageContents contents;
  contents.status.settings.replicas_to_aggregate = 1;
  contents.status.members = {
      {.task = "worker 0", .state = MemberState::kAlive},
      {.task = "worker 1", .state = MemberState::kAlive}};
  contents.paces = {{0, {0.1, 1, 0.2, 0.9}}, {1, {0.1, 1, 0.2, 0.1}}};
  const std::string html = RenderWorkers(contents, 10);
  EXPECT_THAT(html, HasSubstr("worker 1<span class=\"tag\">backup now"));
  EXPECT_THAT(html, Not(HasSubstr("worker 0<span")));
  contents.status.settings.replicas_to_aggregate = 2;
  EXPECT_THAT(RenderWorkers(contents, 10), Not(HasSubstr("backup now")));
}

// The pushes of a step, which it has as replicas_to_aggregate, are fewer than
// the workers.
TEST(PageMembersTest, SharedStepsHaveMicroBatchesAndNoBackups) {
  PageContents contents;
  contents.status.settings = {.replicas_to_aggregate = 1,
                              .micro_batches_per_step = 8,
                              .micro_batches_per_push = 8};
  contents.status.members = {
      {.task = "worker 0", .state = MemberState::kAlive},
      {.task = "worker 1", .state = MemberState::kAlive}};
  contents.paces = {{0, {0.1, 1, 0.2, 0.9}}, {1, {0.1, 1, 0.2, 0.1}}};

  const std::string html = RenderWorkers(contents, 10);

  EXPECT_THAT(html, HasSubstr("<small>2; they share the 8 micro-batches of a "
                              "step, 8 a push</small>"));
  EXPECT_THAT(html, Not(HasSubstr("backup now")));
  contents.status.settings.micro_batches_per_push = 1;
  EXPECT_THAT(RenderWorkers(contents, 10),
              HasSubstr("they share the 8 micro-batches of a step</small>"));
}

TEST(PageMembersTest, SharesAreBars) {
  PageContents contents;
  contents.status.members = {
      {.task = "ps 0",
       .state = MemberState::kAlive,
       .load = LoadStatus{950'000'000, 1'000'000'000, 0.75}}};
  EXPECT_THAT(RenderServers(contents),
              AllOf(HasSubstr("<rect class=\"first\" width=\"95.0\""),
                    HasSubstr("<td class=\"wide warn\">"), HasSubstr("0.75")));
}

}  // namespace
}  // namespace lockstep::chief
