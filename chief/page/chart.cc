#include "chief/page/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/page/html_text.h"
#include "common/text/figure_text.h"

namespace lockstep::chief {
namespace {

// Positions in the picture, in its own units; the labels of values are left of
// the plot.
constexpr double kWidth = 360;
constexpr double kHeight = 150;
constexpr double kLeft = 46;
constexpr double kRight = kWidth - 6;
constexpr double kTop = 8;
constexpr double kBottom = kHeight - 20;
constexpr int kTicks = 4;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Widens a range that is too narrow to be drawn.
  void Widen() {
    const double least = std::max(std::abs(high) * 1e-6, 1e-12);
    if (high - low >= least) return;
    const double more = high == 0 ? 1 : std::abs(high) * 0.05;
    low -= more;
    high += more;
  }
};

double Place(double value, const Range& range, double from, double to) {
  return from + (value - range.low) / (range.high - range.low) * (to - from);
}

std::string Grid(const Range& values, Chart::Unit unit) {
  std::string svg;
  const double tick = RoundTick(values.high - values.low, kTicks);
  for (double at = std::ceil(values.low / tick) * tick; at <= values.high;
       at += tick) {
    // The sum of ticks may miss 0 by rounding, and would be shown as 1e-17.
    const double value = std::abs(at) < tick * 1e-9 ? 0 : at;
    const double y = Place(value, values, kBottom, kTop);
    absl::StrAppendFormat(
        &svg,
        "<line x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\"/>"
        "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
        kLeft, y, kRight, y, kLeft - 5, y + 3,
        EscapeHtml(ValueText(unit, value)));
  }
  return svg;
}

std::string Steps(const Range& steps) {
  std::string svg;
  // At least 1: there are no steps between two numbers.
  const double tick = std::max(RoundTick(steps.high - steps.low, kTicks), 1.0);
  for (double at = std::ceil(steps.low / tick) * tick; at <= steps.high;
       at += tick) {
    const double x = Place(at, steps, kLeft, kRight);
    // A label in the middle of its tick must not leave the picture.
    const char* const anchor = x > kRight - 14 ? "end" : "middle";
    absl::StrAppendFormat(
        &svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"%s\">%s</text>", x,
        kHeight - 6, anchor,
        at < 1e4 ? absl::StrFormat("%.0f", at) : FormatCompact(at));
  }
  return svg;
}

std::string Line(const ChartLine& line, size_t number, const Range& steps,
                 const Range& values) {
  std::string places;
  for (const CurvePoint& point : line.points) {
    absl::StrAppendFormat(&places, "%s%.1f,%.1f", places.empty() ? "" : " ",
                          Place(point.step, steps, kLeft, kRight),
                          Place(point.value, values, kBottom, kTop));
  }
  // A line of one point would be invisible.
  if (line.points.size() == 1) {
    const size_t comma = places.find(',');
    return absl::StrCat("<circle class=\"line", number, "\" cx=\"",
                        places.substr(0, comma), "\" cy=\"",
                        places.substr(comma + 1), "\" r=\"2.5\"/>");
  }
  return absl::StrCat("<polyline class=\"line", number, "\" data-label=\"",
                      EscapeHtml(line.label), "\" points=\"", places, "\"/>");
}

std::string Legend(const Chart& chart) {
  std::string html;
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const ChartLine& line = chart.lines[i];
    if (line.points.empty()) continue;
    absl::StrAppend(&html, "<span class=\"key line", i, "\">",
                    EscapeHtml(line.label), " <b>",
                    EscapeHtml(ValueText(chart.unit, line.points.back().value)),
                    "</b></span>");
  }
  return html;
}

const char* UnitName(Chart::Unit unit) {
  switch (unit) {
    case Chart::Unit::kFigure:
      return "figure";
    case Chart::Unit::kShare:
      return "share";
    case Chart::Unit::kSeconds:
      return "seconds";
    case Chart::Unit::kCount:
      return "count";
  }
  return "";
}

}  // namespace

double RoundTick(double range, int most) {
  const double least = range / most;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    // The tolerance accepts a factor that rounding has made slightly too small.
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string ValueText(Chart::Unit unit, double value) {
  switch (unit) {
    case Chart::Unit::kShare:
      return absl::StrFormat("%.3g %%", 100 * value);
    case Chart::Unit::kSeconds:
      return value == 0 ? "0" : ShortTime(absl::Seconds(value));
    case Chart::Unit::kCount:
      return FormatCompact(value);
    case Chart::Unit::kFigure:
      break;
  }
  return absl::StrFormat("%.3g", value);
}

std::string RenderChart(const Chart& chart) {
  Range steps;
  Range values;
  for (const ChartLine& line : chart.lines) {
    for (const CurvePoint& point : line.points) {
      steps.Add(point.step);
      values.Add(point.value);
    }
  }
  // No line has a point.
  if (steps.low > steps.high) return "";
  if (chart.from_zero) values.Add(0);
  steps.Widen();
  values.Widen();
  std::string html = absl::StrCat("<figure class=\"chart\"><figcaption><span>",
                                  EscapeHtml(chart.title), "</span>",
                                  Legend(chart), "</figcaption>");
  absl::StrAppendFormat(
      &html,
      "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s over steps\" "
      "data-unit=\"%s\" data-box=\"%g %g %g %g\" "
      "data-range=\"%.9g %.9g %.9g %.9g\"><g class=\"grid\">%s%s</g>",
      kWidth, kHeight, EscapeHtml(chart.title), UnitName(chart.unit), kLeft,
      kRight, kTop, kBottom, steps.low, steps.high, values.low, values.high,
      Grid(values, chart.unit), Steps(steps));
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    if (chart.lines[i].points.empty()) continue;
    absl::StrAppend(&html, Line(chart.lines[i], i, steps, values));
  }
  return html + "</svg></figure>";
}

}  // namespace lockstep::chief
