#include "deploy/cli/simulate/pass_trace.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/bounded_json.h"

namespace lockstep::cli {
namespace {

constexpr double kLongest = 1e6;

absl::StatusOr<std::vector<double>> TimesOf(const nlohmann::json& worker,
                                            absl::string_view name) {
  if (!worker.is_array() || worker.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", DescribeJson(worker),
                     ", but must be an array of at least one time in seconds"));
  }
  std::vector<double> times;
  for (size_t i = 0; i < worker.size(); ++i) {
    const double seconds =
        worker[i].is_number() ? worker[i].get<double>() : 0.0;
    if (!(seconds > 0) || seconds > kLongest) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, "[", i, "] is ", ShowJson(worker[i]),
          ", but must be a number of seconds above 0 and at most 1000000"));
    }
    times.push_back(seconds);
  }
  return times;
}

}  // namespace

absl::StatusOr<PassTrace> ParsePassTrace(absl::string_view text,
                                         absl::string_view source) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json,
                            ParseBoundedJson(text, source));
  const bool object = json.is_object();
  const auto found = object ? json.find("pass_seconds") : json.end();
  if (!object || found == json.end() || !found->is_array() || found->empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        source,
        " must be {\"pass_seconds\": [[0.05, 0.052], ...]}, with an "
        "array of times for each worker"));
  }
  PassTrace trace;
  for (size_t i = 0; i < found->size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        std::vector<double> times,
        TimesOf((*found)[i], absl::StrCat(source, ": pass_seconds[", i, "]")));
    trace.push_back(std::move(times));
  }
  return trace;
}

}  // namespace lockstep::cli
