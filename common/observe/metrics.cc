#include "common/observe/metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace lockstep {
namespace {

std::string FormatValue(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrFormat("%.17g", value);
}

std::string FormatLabels(const Metric& metric) {
  std::string text;
  for (const auto& [name, value] : metric.labels) {
    const std::string escaped = absl::StrReplaceAll(
        value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
    absl::StrAppend(&text, text.empty() ? "{" : ",", name, "=\"", escaped,
                    "\"");
  }
  return text.empty() ? text : text + "}";
}

}  // namespace

void AddLabels(const std::vector<std::pair<std::string, std::string>>& labels,
               std::vector<Metric>& metrics) {
  for (Metric& metric : metrics) {
    std::vector<std::pair<std::string, std::string>> all;
    for (const auto& label : labels) {
      const bool has = std::any_of(
          metric.labels.begin(), metric.labels.end(),
          [&](const auto& own) { return own.first == label.first; });
      if (!has && !label.second.empty()) all.push_back(label);
    }
    std::move(metric.labels.begin(), metric.labels.end(),
              std::back_inserter(all));
    metric.labels = std::move(all);
  }
}

std::string FormatMetrics(absl::Span<const Metric> metrics) {
  std::string text;
  absl::string_view last_name;
  for (const Metric& metric : metrics) {
    if (metric.name != last_name) {
      const bool counts = metric.kind == Metric::Kind::kCounter;
      absl::StrAppend(&text, "# HELP ", metric.name, " ", metric.help, "\n",
                      "# TYPE ", metric.name, counts ? " counter" : " gauge",
                      "\n");
      last_name = metric.name;
    }
    absl::StrAppend(&text, metric.name, FormatLabels(metric), " ",
                    FormatValue(metric.value), "\n");
  }
  return text;
}

}  // namespace lockstep
