#include "chief/page/page.h"

#include <regex>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/files/posix_file.h"
#include "common/checkpoint/files/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

MemberStatus Worker(int index) {
  WorkerCounts counts;
  counts.accepted = 7;
  counts.stale = 3;
  counts.activity = "computes step 5";
  counts.computes = true;
  return {.task = absl::StrCat("worker ", index),
          .state = MemberState::kAlive,
          .since_heartbeat = absl::Seconds(1),
          .counts = counts};
}

PageContents SomeJob() {
  PageContents contents;
  contents.now = absl::UnixEpoch() + absl::Hours(24);
  contents.status.job_name = "fashion";
  contents.status.state = lockstep::JobState::kTraining;
  contents.status.step = 800;
  contents.status.train_steps = 1600;
  contents.status.settings.replicas_to_aggregate = 2;
  contents.status.members = {
      {.task = "ps 0",
       .state = MemberState::kAlive,
       .load = LoadStatus{500'000'000, 1'000'000'000, 0.75}},
      Worker(0),
      Worker(1),
      Worker(2)};
  contents.steps_per_second = 10;
  return contents;
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(PageTest, SummaryIsThereWithoutScripts) {
  EXPECT_THAT(
      RenderPage(SomeJob()),
      AllOf(HasSubstr("<h1>fashion</h1>"), HasSubstr("step <b>800</b> of 1600"),
            HasSubstr("(50 %)"), HasSubstr("<b>1:20</b>"), HasSubstr("ps 0"),
            HasSubstr("500 MB of 1.0 GB"), HasSubstr("7 counted, 3 not"),
            HasSubstr("<noscript><meta http-equiv=\"refresh\"")));
}

TEST(PageTest, AJobThatDoesNotCountItsExamplesShowsItsSteps) {
  PageContents contents = SomeJob();
  EXPECT_THAT(RenderPage(contents),
              AllOf(HasSubstr("<span>steps a second</span><b>10"),
                    Not(HasSubstr("<span>examples a second</span>"))));
  contents.status.examples_per_second = 640;
  EXPECT_THAT(RenderPage(contents),
              AllOf(HasSubstr("<span>examples a second</span><b>640"),
                    HasSubstr("steps a second</span>")));
}

TEST(PageTest, NothingIsLoadedFromElsewhere) {
  const std::string html = RenderPage(SomeJob());
  const std::regex reference("(src|href|action)=\"([^\"]*)\"");
  int targets = 0;
  for (std::sregex_iterator it(html.begin(), html.end(), reference), end;
       it != end; ++it) {
    ++targets;
    const std::string target = (*it)[2];
    EXPECT_TRUE(target.rfind("/", 0) == 0 || target == "data:,") << target;
  }
  EXPECT_GE(targets, 4);  // the icon, and three files of the chief
  EXPECT_EQ(Count(html, "@import"), 0u);
  EXPECT_EQ(Count(html, "url("), 0u);
  EXPECT_EQ(Count(html, "<script"), 1u);
  EXPECT_EQ(Count(html, "<style"), 1u);
  EXPECT_EQ(Count(html, " style="), 0u);  // the policy has no such
  EXPECT_EQ(Count(html, " onload="), 0u);
}

TEST(PageTest, TextsOfOthersAreEscaped) {
  PageContents contents = SomeJob();
  const std::string evil = "<img src=x onerror=\"alert(1)\">";
  contents.status.job_name = evil;
  contents.status.reason = evil;
  contents.status.state = lockstep::JobState::kFailed;
  contents.status.example_unit = evil;
  contents.status.checkpoint_trouble = evil;
  contents.status.security_troubles = {evil};
  contents.status.waits = {{evil, evil, absl::Seconds(9)}};
  contents.status.evaluation = {.step = 1, .figures = {{evil, 1}}};
  contents.status.members.push_back(
      {.task = "worker " + evil, .counts = WorkerCounts{}});
  contents.status.members.back().counts->activity = evil;
  contents.status.members.push_back({.task = "ps " + evil});
  const std::string html = RenderPage(contents);
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_GE(Count(html, "&lt;img"), 8u);
}

TEST(PageTest, EvaluatorSaysHowFarItIs) {
  PageContents contents = SomeJob();
  WorkerCounts counts;
  counts.activity = "scores step 700, 40 %, 12 s to go";
  counts.activity_age = absl::Seconds(8);
  contents.status.members.push_back({.task = "evaluator 0",
                                     .state = MemberState::kAlive,
                                     .since_heartbeat = absl::Seconds(1),
                                     .counts = counts});

  EXPECT_THAT(RenderPage(contents),
              HasSubstr("scores step 700, 40 %, 12 s to go<span"));
}

TEST(PageTest, FiveThousandWorkersStayReadable) {
  PageContents contents = SomeJob();
  contents.status.members.clear();
  for (int i = 0; i < 5000; ++i) {
    contents.status.members.push_back(Worker(i));
    contents.paces[i] = {0.1, 1, 0.2, 0.7};
  }
  contents.paces[4321] = {0.5, 5, 0, 0.1};
  contents.status.members[2345].state = MemberState::kDead;

  const std::string html = RenderPage(contents);

  EXPECT_LT(html.size(), 100'000u);
  const size_t dead = html.find("<th><i class=\"dot bad\"></i>worker 2345");
  const size_t slow = html.find("<th><i class=\"dot warn\"></i>worker 4321");
  EXPECT_LT(dead, slow);
  EXPECT_LT(slow, html.find("</i>worker 0<"));
  EXPECT_THAT(html, HasSubstr("<th>4960 more</th>"));
  EXPECT_THAT(html, HasSubstr(absl::StrCat(4960 * 7, " counted, ", 4960 * 3)));
}

TEST(PageTest, TroublesThatAreNotListedAreCounted) {
  PageContents contents = SomeJob();
  contents.status.members.clear();
  for (int i = 0; i < 30; ++i) {
    contents.status.members.push_back(Worker(i));
    contents.paces[i] = {0.5, 5, 0, 0};  // each is slow
  }

  const std::vector<std::string> troubles = Troubles(contents);

  ASSERT_EQ(troubles.size(), 9u);
  EXPECT_EQ(troubles.back(), "and 22 more");
}

TEST(PageTest, TroublesNameWhatToLookAtFirst) {
  PageContents contents = SomeJob();
  EXPECT_TRUE(Troubles(contents).empty());
  contents.status.members[0].load->resident_bytes = 950'000'000;
  contents.status.members[2].state = MemberState::kDead;
  contents.paces[2] = {0.5, 2.5, 0, 0};
  contents.status.waits = {{"step 5 on ps 0", "worker 1", absl::Seconds(4)},
                           {"worker 0", "a token", absl::Seconds(1)}};
  contents.status.checkpoint_trouble = "disk full";
  EXPECT_THAT(Troubles(contents),
              ElementsAre("ps 0 has nearly used up its memory",
                          "worker 1 is dead", "worker 2: 2.5 times slower",
                          "step 5 on ps 0 waits for worker 1, for 4.0 s",
                          "the newest checkpoint failed: disk full"));
}

TEST(PageTest, TimeLeftIsThatOfAJobThatMakesSteps) {
  PageContents contents = SomeJob();
  EXPECT_EQ(TimeLeft(contents.status, 10), absl::Seconds(80));
  EXPECT_EQ(TimeLeft(contents.status, 0), std::nullopt);
  contents.status.step = 1601;  // the last steps came after the plan
  EXPECT_EQ(TimeLeft(contents.status, 10), absl::ZeroDuration());
  contents.status.step = 800;
  contents.status.settings.paused = true;
  EXPECT_EQ(TimeLeft(contents.status, 10), std::nullopt);
  contents.status.settings.paused = false;
  contents.status.state = lockstep::JobState::kFinishing;
  EXPECT_EQ(TimeLeft(contents.status, 10), std::nullopt);
}

TEST(PageTest, PolicyAllowsItsOwnScriptAndStyleOnly) {
  const std::string policy = PagePolicy();
  EXPECT_THAT(
      policy,
      ::testing::MatchesRegex(
          "; script-src 'sha256-[A-Za-z0-9+/]{43}='; style-src "
          "'sha256-[A-Za-z0-9+/]{43}='; connect-src 'self'; img-src data:"));
  // Browsers run only a text of exactly that hash.
  const std::string html = RenderPage(SomeJob());
  const auto source = [&](const std::string& name) {
    const size_t begin = html.find("<" + name + ">") + name.size() + 2;
    const std::string text =
        html.substr(begin, html.find("</" + name + ">") - begin);
    EXPECT_GT(text.size(), 100u) << name;
    const testing::TempDir directory;
    EXPECT_OK(WriteWholeFile(directory.Join("text"), text));
    const auto hash = Sha256OfFile(directory.Join("text"));
    EXPECT_OK(hash);
    return absl::StrCat("'sha256-",
                        absl::Base64Escape(absl::HexStringToBytes(*hash)), "'");
  };
  EXPECT_THAT(policy, HasSubstr("script-src " + source("script")));
  EXPECT_THAT(policy, HasSubstr("style-src " + source("style")));
}

}  // namespace
}  // namespace lockstep::chief
