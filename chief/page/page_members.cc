#include "chief/page/page_members.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/page/html_text.h"
#include "chief/page/worker_rows.h"
#include "common/text/count_text.h"
#include "common/text/figure_text.h"

namespace lockstep::chief {
namespace {

// A bar of `share` in [0, 1], and perhaps a second one after it.
std::string Bar(const char* kind, double share, double more = 0) {
  // Shares are computed from members' reports, which may be wrong.
  share = std::clamp(share, 0.0, 1.0);
  more = std::clamp(more, 0.0, 1 - share);
  return absl::StrFormat(
      "<svg class=\"bar %s\" viewBox=\"0 0 100 8\" "
      "preserveAspectRatio=\"none\" "
      "aria-hidden=\"true\"><rect class=\"rest\" width=\"100\" height=\"8\"/>"
      "<rect class=\"first\" width=\"%.1f\" height=\"8\"/>"
      "<rect class=\"second\" x=\"%.1f\" width=\"%.1f\" height=\"8\"/></svg>",
      kind, 100 * share, 100 * share, 100 * more);
}

std::string Dot(MemberState state, bool trouble) {
  const bool gone =
      state == MemberState::kDead || state == MemberState::kMissing;
  const char* const kind = gone                          ? "bad"
                           : trouble                     ? "warn"
                           : state == MemberState::kLeft ? "idle"
                                                         : "good";
  return absl::StrCat("<i class=\"dot ", kind, "\"></i>");
}

// The state of a member that is not alive, beside its name.
std::string StateTag(MemberState state) {
  if (state == MemberState::kAlive) return "";
  return absl::StrCat("<span class=\"tag\">", MemberStateName(state),
                      "</span>");
}

std::string PassesCell(int64_t accepted, int64_t stale) {
  const double all =
      static_cast<double>(std::max<int64_t>(accepted + stale, 1));
  return absl::StrCat("<td class=\"wide\">",
                      Bar("passes", static_cast<double>(accepted) / all,
                          static_cast<double>(stale) / all),
                      "<span class=\"sub\">", accepted, " counted, ", stale,
                      " not</span></td>");
}

std::string PaceCells(const WorkerRow& row) {
  if (!row.pace.has_value()) return "<td></td><td></td>";
  const WorkerPace& pace = *row.pace;
  return absl::StrFormat(
      "<td class=\"pace%s\">%s<span class=\"sub\">%.2f x</span></td>"
      "<td class=\"waits\">%s<span class=\"sub\">%s</span></td>",
      pace.slowness >= kSlow ? " warn" : "",
      ShortTime(absl::Seconds(pace.busy_seconds)), pace.slowness,
      Bar("waits", pace.waiting_share), PercentText(pace.waiting_share));
}

// The activity of a process and its age; empty: it has reported none.
std::string DoingText(const WorkerCounts& counts) {
  if (counts.activity.empty()) return "";
  return absl::StrCat(EscapeHtml(counts.activity), "<span class=\"sub\">",
                      FormatAge(counts.activity_age), "</span>");
}

// The table row of a worker. A worker whose share of counted passes is below
// `seldom` is shown as a backup.
std::string WorkerLine(const WorkerRow& row, double seldom) {
  const MemberStatus& member = row.member;
  std::string tags;
  if (!row.trouble.empty()) {
    absl::StrAppend(&tags, "<span class=\"tag warn\">", EscapeHtml(row.trouble),
                    "</span>");
  } else {
    absl::StrAppend(&tags, StateTag(member.state));
  }
  // In addition to a trouble: a slow worker is often the backup.
  if (row.pace.has_value() && row.pace->counted_share < seldom) {
    absl::StrAppend(&tags, "<span class=\"tag\">backup now</span>");
  }
  const WorkerCounts counts = member.counts.value_or(WorkerCounts());
  return absl::StrCat("<tr><th>", Dot(member.state, !row.trouble.empty()),
                      EscapeHtml(member.task), tags, "</th>",
                      PassesCell(counts.accepted, counts.stale), PaceCells(row),
                      "<td class=\"doing\">", DoingText(counts), "</td></tr>");
}

std::string SumLine(const WorkerSum& sum) {
  return absl::StrCat(
      "<tr class=\"sum\"><th>", sum.workers, " more</th>",
      PassesCell(sum.accepted, sum.stale),
      "<td></td><td></td><td class=\"doing\">without trouble, or with less; "
      "they waited ",
      FormatAge(sum.workers > 0 ? sum.waiting / sum.workers
                                : absl::ZeroDuration()),
      " each</td></tr>");
}

std::string MemoryCell(const LoadStatus& load) {
  const auto used = static_cast<double>(load.resident_bytes);
  const auto limit = static_cast<double>(load.memory_limit_bytes);
  const double share = limit > 0 ? used / limit : 0;
  return absl::StrCat("<td class=\"wide", share > 0.9 ? " warn" : "", "\">",
                      Bar("memory", share), "<span class=\"sub\">",
                      BytesText(used), limit > 0 ? " of " : "",
                      limit > 0 ? BytesText(limit) : "", "</span></td>");
}

std::string ServerLine(const MemberStatus& member) {
  const std::string heard =
      member.since_heartbeat.has_value()
          ? absl::StrCat("heard ", FormatAge(*member.since_heartbeat), " ago")
          : "not heard yet";
  // An evaluator reports its activity.
  const std::string doing = DoingText(member.counts.value_or(WorkerCounts()));
  return absl::StrCat(
      "<tr><th>", Dot(member.state, false), EscapeHtml(member.task),
      StateTag(member.state), "</th>",
      member.load.has_value()
          ? absl::StrCat(MemoryCell(*member.load), "<td>",
                         absl::StrFormat("%.2f", member.load->processors),
                         "<span class=\"sub\">processors</span></td>")
          : "<td class=\"wide\"></td><td></td>",
      "<td class=\"doing\">", doing.empty() ? heard : doing, "</td></tr>");
}

// The gradients of a step.
std::string StepText(const Settings& settings, bool has_backups) {
  if (settings.micro_batches_per_step > 0) {
    const int64_t numbers = settings.micro_batches_per_step;
    std::string text =
        absl::StrCat("; they share the ", numbers, " micro-batch",
                     numbers == 1 ? "" : "es", " of a step");
    if (settings.micro_batches_per_push > 1) {
      absl::StrAppend(&text, ", ", settings.micro_batches_per_push, " a push");
    }
    return text;
  }
  if (!has_backups) return "; a step takes all gradients";
  return absl::StrCat("; a step takes the first ",
                      CountText(settings.replicas_to_aggregate, "gradient"));
}

}  // namespace

std::string RenderWorkers(const PageContents& contents, size_t most) {
  const JobStatus& status = contents.status;
  const std::vector<WorkerRow> rows =
      RankWorkers(status, contents.paces, contents.heartbeat_interval);
  if (rows.empty()) return "";
  const auto workers = static_cast<int64_t>(rows.size());
  const int64_t counted = status.settings.replicas_to_aggregate;
  const bool has_backups = status.settings.micro_batches_per_step == 0 &&
                           counted > 0 && counted < workers;
  std::string html = absl::StrCat(
      "<section id=\"workers\"><h2>Workers<small>", workers,
      StepText(status.settings, has_backups),
      "</small></h2><div class=\"scroll\"><table><thead><tr><th>task</th>"
      "<th>passes</th><th>computes a pass in</th><th>waits</th><th>doing</th>"
      "</tr></thead><tbody>");
  // Half of the share that each worker would have if all counted equally.
  const double seldom = has_backups ? 0.5 * static_cast<double>(counted) /
                                          static_cast<double>(workers)
                                    : 0;
  const size_t shown = std::min(rows.size(), most);
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&html, WorkerLine(rows[i], seldom));
  }
  if (shown < rows.size()) {
    absl::StrAppend(&html, SumLine(SumRows(rows, shown)));
  }
  return html + "</tbody></table></div></section>";
}

std::string RenderServers(const PageContents& contents) {
  std::string lines;
  size_t shown = 0;
  size_t more = 0;
  for (const MemberStatus& member : contents.status.members) {
    if (WorkerIndexOf(member).has_value()) continue;
    if (shown == kMostRows) {
      ++more;
      continue;
    }
    ++shown;
    absl::StrAppend(&lines, ServerLine(member));
  }
  if (lines.empty()) return "";
  if (more > 0) {
    absl::StrAppend(&lines, "<tr class=\"sum\"><th>", more,
                    " more</th><td></td><td></td><td></td></tr>");
  }
  return absl::StrCat(
      "<section id=\"servers\"><h2>Servers<small>and the evaluator</small></h2>"
      "<div class=\"scroll\"><table><thead><tr><th>task</th><th>memory</th>"
      "<th>load</th><th></th></tr></thead><tbody>",
      lines, "</tbody></table></div></section>");
}

}  // namespace lockstep::chief
