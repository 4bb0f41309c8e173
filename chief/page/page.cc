#include "chief/page/page.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/page/chart.h"
#include "chief/page/html_text.h"
#include "chief/page/page_members.h"
#include "chief/page/worker_rows.h"
#include "common/text/figure_text.h"

namespace lockstep::chief {

// Made from page.css and page.js by EmbedFile.cmake.
extern const unsigned char kPageCss[];
extern const size_t kPageCssBytes;
extern const unsigned char kPageJs[];
extern const size_t kPageJsBytes;

namespace {

// A shorter wait is no trouble.
constexpr absl::Duration kShortWait = absl::Seconds(3);
constexpr double kFullMemory = 0.9;
constexpr size_t kMostTroubles = 8;
constexpr size_t kMostEvents = 60;

std::string Embedded(const unsigned char* bytes, size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}
std::string Css() { return Embedded(kPageCss, kPageCssBytes); }
std::string Js() { return Embedded(kPageJs, kPageJsBytes); }

// A source of a content security policy that allows exactly this text.
std::string HashSource(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int bytes = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &bytes, EVP_sha256(),
             nullptr);
  return absl::StrCat("'sha256-",
                      absl::Base64Escape(Embedded(digest.data(), bytes)), "'");
}

std::string ClockTime(double unix_seconds) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S",
                          absl::UnixEpoch() + absl::Seconds(unix_seconds),
                          absl::UTCTimeZone());
}

std::string Card(const std::string& title, const std::string& value,
                 const std::string& sub) {
  return absl::StrCat("<div class=\"card\"><span>", title, "</span><b>", value,
                      "</b><span class=\"sub\">", sub, "</span></div>");
}

std::string ScoreCard(const Evaluation& score) {
  const std::string at = absl::StrCat("at step ", score.step);
  if (!score.figures.empty()) {
    return Card(EscapeHtml(score.figures.front().first),
                FigureText(score.figures.front().second), at);
  }
  return Card("test accuracy", absl::StrFormat("%.2f %%", 100 * score.accuracy),
              at);
}

// A program without a batch size need not say how many examples it has.
std::string SpeedCard(const PageContents& contents) {
  const JobStatus& status = contents.status;
  const std::string steps = RateText(contents.steps_per_second);
  if (status.examples_per_second <= 0) return Card("steps a second", steps, "");
  return Card(absl::StrCat(EscapeHtml(status.example_unit), " a second"),
              FormatCompact(status.examples_per_second),
              absl::StrCat(steps, " steps a second"));
}

std::string Cards(const PageContents& contents) {
  const JobStatus& status = contents.status;
  std::string html = "<section id=\"cards\">";
  const std::optional<absl::Duration> left =
      TimeLeft(status, contents.steps_per_second);
  absl::StrAppend(
      &html,
      Card(IsFinal(status.state) ? "took" : "time left",
           IsFinal(status.state) ? FormatClock(status.training_time)
           : left.has_value()    ? FormatClock(*left)
                                 : "-",
           absl::StrCat(FormatClock(status.training_time), " of training")));
  if (status.has_loss()) {
    absl::StrAppend(
        &html, Card("loss", FigureText(status.loss), "mean of the workers"));
  }
  if (status.evaluation.has_value()) {
    absl::StrAppend(&html, ScoreCard(*status.evaluation));
  }
  absl::StrAppend(&html, SpeedCard(contents));
  absl::StrAppend(&html, Card("learning rate",
                              FigureText(status.settings.learning_rate_now),
                              "of the next step"));
  const bool saved = status.last_checkpoint_step >= 0;
  absl::StrAppend(
      &html,
      Card("checkpoint",
           saved ? absl::StrCat(status.last_checkpoint_step) : "none",
           !saved ? "yet"
           : status.last_checkpoint_age.has_value()
               ? absl::StrCat(FormatAge(*status.last_checkpoint_age), " ago")
               : ""));
  return html + "</section>";
}

std::string Header(const PageContents& contents) {
  const JobStatus& status = contents.status;
  const double share = status.train_steps > 0
                           ? static_cast<double>(status.step) /
                                 static_cast<double>(status.train_steps)
                           : 0;
  return absl::StrCat(
      "<header id=\"head\"><h1>", EscapeHtml(status.job_name),
      "</h1><span class=\"state ", ShownState(status), "\">",
      ShownState(status), "</span><span class=\"steps\">step <b>", status.step,
      "</b> of ", status.train_steps, " (", PercentText(share),
      ")</span><progress max=\"", std::max<int64_t>(status.train_steps, 1),
      "\" value=\"", status.step, "\"></progress></header>");
}

std::string List(const char* id, const char* title,
                 const std::vector<std::string>& sentences) {
  if (sentences.empty()) return "";
  std::string html =
      absl::StrCat("<section id=\"", id, "\"><h2>", title, "</h2><ul>");
  for (const std::string& sentence : sentences) {
    absl::StrAppend(&html, "<li>", EscapeHtml(sentence), "</li>");
  }
  return html + "</ul></section>";
}

std::string WaitSentence(const WaitStatus& wait) {
  return absl::StrCat(wait.owner, " waits for ", wait.waits_for, ", for ",
                      FormatAge(wait.since));
}

std::string WaitList(const JobStatus& status) {
  std::vector<std::string> sentences;
  for (const WaitStatus& wait : status.waits) {
    if (sentences.size() == kMostRows) {
      sentences.push_back(
          absl::StrCat("and ", status.waits.size() - kMostRows, " more"));
      break;
    }
    sentences.push_back(WaitSentence(wait));
  }
  return List("waits", "Waits", sentences);
}

std::string Charts(const JobRecord& record) {
  using Unit = Chart::Unit;
  const auto line = [&](const char* label, const std::string& name) {
    return ChartLine{label, record.Points(name)};
  };
  const std::string evaluator = JobRecord::kEvaluator;
  // Charts without points are left out, so jobs without an evaluator have
  // fewer.
  const std::vector<Chart> charts = {
      {"Loss",
       Unit::kFigure,
       {line("training", "loss"), line("test", evaluator + "loss")}},
      {"Accuracy", Unit::kShare, {line("test", evaluator + "accuracy")}},
      {"Speed",
       Unit::kCount,
       {line("examples a second", "examples_per_second")},
       true},
      {"Step time",
       Unit::kSeconds,
       {line("median", JobRecord::kMedian), line("99 %", JobRecord::kP99)},
       true},
      {"Learning rate",
       Unit::kFigure,
       {line("next step", "learning_rate")},
       true},
      {"Workers wait",
       Unit::kShare,
       {line("share of their time", "waiting_fraction")},
       true}};
  std::string html;
  for (const Chart& chart : charts) {
    absl::StrAppend(&html, RenderChart(chart));
  }
  return html.empty()
             ? ""
             : absl::StrCat("<section id=\"charts\">", html, "</section>");
}

std::string StoryOf(const PageContents& contents) {
  const std::vector<StoryEvent> events = contents.record.Events();
  if (events.empty()) return "";
  std::string html =
      "<section id=\"story\"><h2>Story<small>times in UTC</small></h2><ol>";
  size_t shown = 0;
  // The newest event first.
  for (auto event = events.rbegin();
       event != events.rend() && shown < kMostEvents; ++event, ++shown) {
    absl::StrAppend(&html, "<li class=\"", StoryKindName(event->kind),
                    "\"><time>", ClockTime(event->unix_seconds),
                    "</time><span>", EscapeHtml(event->text), "</span></li>");
  }
  html += "</ol>";
  const LossStatus& losses = contents.status.losses;
  if (losses.any()) {
    absl::StrAppend(&html,
                    "<p class=\"sub\">All interruptions so far: servers "
                    "were away ",
                    losses.recoveries, " times, ", losses.steps_redone,
                    " steps redone, ", losses.steps_repeated,
                    " committed steps repeated, the job stood still for ",
                    FormatSeconds(losses.stood_still), ".</p>");
  }
  return html + "</section>";
}

}  // namespace

std::string PagePolicy() {
  // Only the page's own script and style run, even if a text were not escaped.
  return absl::StrCat("; script-src ", HashSource(Js()), "; style-src ",
                      HashSource(Css()), "; connect-src 'self'; img-src data:");
}

std::optional<absl::Duration> TimeLeft(const JobStatus& status,
                                       double steps_per_second) {
  if (status.state != lockstep::JobState::kTraining || status.settings.paused ||
      !(steps_per_second > 0)) {
    return std::nullopt;
  }
  const auto steps = static_cast<double>(
      std::max<int64_t>(status.train_steps - status.step, 0));
  return absl::Seconds(steps / steps_per_second);
}

std::vector<std::string> Troubles(const PageContents& contents) {
  const JobStatus& status = contents.status;
  std::vector<std::string> troubles;
  if (status.state == lockstep::JobState::kFailed) {
    troubles.push_back(absl::StrCat("the job has failed: ", status.reason));
  }
  for (const MemberStatus& member : status.members) {
    if (member.state == MemberState::kDead) {
      troubles.push_back(absl::StrCat(member.task, " is dead"));
    }
    if (member.load.has_value() && member.load->memory_limit_bytes > 0 &&
        static_cast<double>(member.load->resident_bytes) >
            kFullMemory *
                static_cast<double>(member.load->memory_limit_bytes)) {
      troubles.push_back(
          absl::StrCat(member.task, " has nearly used up its ", "memory"));
    }
  }
  for (const WorkerRow& row :
       RankWorkers(status, contents.paces, contents.heartbeat_interval)) {
    // The rows are sorted by weight, so all that follow are without trouble.
    if (row.weight <= 0) break;
    if (row.member.state == MemberState::kDead) continue;  // listed above
    troubles.push_back(absl::StrCat(row.member.task, ": ", row.trouble));
  }
  for (const WaitStatus& wait : status.waits) {
    if (wait.since >= kShortWait && !IsFinal(status.state)) {
      troubles.push_back(WaitSentence(wait));
    }
  }
  if (!status.checkpoint_trouble.empty()) {
    troubles.push_back(absl::StrCat("the newest checkpoint failed: ",
                                    status.checkpoint_trouble));
  }
  for (const std::string& trouble : status.security_troubles) {
    troubles.push_back(trouble);
  }
  if (troubles.size() > kMostTroubles) {
    const size_t more = troubles.size() - kMostTroubles;
    troubles.resize(kMostTroubles);
    troubles.push_back(absl::StrCat("and ", more, " more"));
  }
  return troubles;
}

std::string RenderPage(const PageContents& contents) {
  const JobStatus& status = contents.status;
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<meta name=\"color-scheme\" content=\"light dark\">"
      // Without scripts the browser loads the whole page again. The icon is
      // empty: otherwise browsers would request one.
      "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript><title>",
      EscapeHtml(status.job_name), ": ", ShownState(status), ", step ",
      status.step, "</title><link rel=\"icon\" href=\"data:,\"><style>", Css(),
      "</style></head><body><main>", Header(contents),
      List("troubles", "Look at this first", Troubles(contents)),
      Cards(contents), Charts(contents.record),
      RenderWorkers(contents, kMostRows), RenderServers(contents),
      WaitList(status), StoryOf(contents),
      "</main><footer><span id=\"fresh\">as of ",
      ClockTime(absl::ToDoubleSeconds(contents.now - absl::UnixEpoch())),
      " UTC</span><a href=\"/status.json\">status.json</a>"
      "<a href=\"/curves.json\">curves.json</a><a href=\"/metrics\">metrics</a>"
      "</footer><script>",
      Js(), "</script></body></html>\n");
}

}  // namespace lockstep::chief
