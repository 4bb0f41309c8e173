#ifndef LOCKSTEP_CHIEF_PAGE_CHART_H_
#define LOCKSTEP_CHIEF_PAGE_CHART_H_

#include <string>
#include <vector>

#include "chief/page/curve.h"

namespace lockstep::chief {

// One curve of a chart.
struct ChartLine {
  std::string label;
  std::vector<CurvePoint> points;  // ascending in their steps
};

// A picture of curves over steps.
struct Chart {
  enum class Unit { kFigure, kShare, kSeconds, kCount };

  std::string title;
  Unit unit = Unit::kFigure;
  std::vector<ChartLine> lines;  // at most 3, which have colours of their own
  bool from_zero = false;        // the axis begins there
};

// Returns the smallest of 1, 2, 2.5, 5 times a power of ten that divides
// `range`, a positive number, into at most `most` parts.
double RoundTick(double range, int most);

// Returns a value of an axis as text, e.g. "12.5 ms".
std::string ValueText(Chart::Unit unit, double value);

// Returns an element <figure> with the picture as SVG, the newest value of each
// line, and the range of both axes in attributes for the page's script. Charts
// without a point are empty: "".
std::string RenderChart(const Chart& chart);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_CHART_H_
