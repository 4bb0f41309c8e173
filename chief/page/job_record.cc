#include "chief/page/job_record.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/excerpt.h"
#include "common/text/plain_text.h"
#include "nlohmann/json.hpp"

namespace lockstep::chief {
namespace {

using Json = nlohmann::ordered_json;

absl::Status NoRecord(const std::string& where) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": not as a record of a job has it"));
}

// Six digits are enough for a picture and keep the text short.
double Rounded(double value) {
  if (value == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 5);
  return std::isfinite(unit) && unit != 0 ? std::round(value / unit) * unit
                                          : value;
}

Json ToJson(const Curve& curve) {
  Json points = Json::array();
  for (const CurvePoint& point : curve.Points()) {
    // Tenths of a second are enough: samples are a second apart.
    points.push_back({point.step, std::round(point.unix_seconds * 10) / 10,
                      Rounded(point.value)});
  }
  return {{"stride", curve.stride()}, {"points", std::move(points)}};
}

bool IsNumbers(const Json& json, size_t count) {
  if (!json.is_array() || json.size() != count) return false;
  for (const Json& number : json) {
    if (!number.is_number() || !std::isfinite(number.get<double>())) {
      return false;
    }
  }
  return true;
}

// A time of which ToJson() can write the fractions: scaled up, a larger one may
// be infinite, which JSON has not.
bool IsTime(const Json& seconds) {
  return seconds.is_number() && std::abs(seconds.get<double>()) <= 1e15;
}

absl::StatusOr<Curve> ToCurve(const Json& json, const std::string& name) {
  constexpr int64_t kLongestStride = int64_t{1} << 40;
  const std::string where = absl::StrCat("curves.", CutText(name, 64));
  if (!json.is_object() || !json.contains("stride") ||
      !json.contains("points") || !json["stride"].is_number_integer() ||
      !json["points"].is_array() ||
      json["points"].size() > Curve::kMostPoints) {
    return NoRecord(where);
  }
  const auto stride = json["stride"].get<int64_t>();
  if (stride < 1 || stride > kLongestStride) return NoRecord(where);
  std::vector<CurvePoint> points;
  for (const Json& point : json["points"]) {
    if (!IsNumbers(point, 3) || !IsTime(point[1])) return NoRecord(where);
    points.push_back({point[0], point[1], point[2]});
    // Curve needs ascending steps; the file may have been edited.
    if (points.size() > 1 &&
        points[points.size() - 2].step > points.back().step) {
      return NoRecord(where);
    }
  }
  return Curve(std::move(points), stride);
}

absl::StatusOr<Story> ToStory(const Json& json) {
  std::vector<StoryEvent> events;
  for (const Json& event : json) {
    if (!event.is_array() || event.size() != 3 || !IsTime(event[0]) ||
        !event[1].is_string() || !event[2].is_string()) {
      return NoRecord("story");
    }
    const std::optional<StoryEvent::Kind> kind =
        ParseStoryKind(event[1].get<std::string>());
    if (!kind.has_value()) continue;  // written by a newer program
    events.push_back({event[0].get<double>(), *kind,
                      OneLine(event[2].get<std::string>(), kMaxPeerText)});
  }
  return Story(std::move(events));
}

}  // namespace

void JobRecord::AddTo(const std::string& name, const CurvePoint& point) {
  // A user's program may report figures of any names, so their number is
  // bounded.
  if (curves_.size() == kMostCurves && !curves_.contains(name)) return;
  curves_[name].Add(point);
}

void JobRecord::Add(const SummarySample& sample,
                    const StepTimes::Quantiles* times) {
  story_.Add(sample);
  // Before training there are no values, and the step is not known.
  if (sample.job.state == JobState::kStarting) return;
  const double now = absl::ToDoubleSeconds(sample.now - absl::UnixEpoch());
  for (const SummaryPoints& points : summary_.Add(sample)) {
    const bool evaluator = points.run == "evaluator";
    // Curves of single workers are not recorded: there may be thousands.
    if (!points.run.empty() && !evaluator) continue;
    for (const NamedFigure& figure : points.values) {
      AddTo(evaluator ? absl::StrCat(kEvaluator, figure.name) : figure.name,
            {static_cast<double>(points.step), now, figure.value});
    }
  }
  if (times == nullptr) return;
  const auto step = static_cast<double>(sample.job.global_step);
  AddTo(kMedian, {step, now, absl::ToDoubleSeconds(times->median)});
  AddTo(kP99, {step, now, absl::ToDoubleSeconds(times->p99)});
}

void JobRecord::GoBack(int64_t step) {
  for (auto& [name, curve] : curves_) curve.GoBack(static_cast<double>(step));
  // Their names would count towards kMostCurves.
  std::erase_if(
      curves_, [](const auto& entry) { return entry.second.Points().empty(); });
}

std::vector<CurvePoint> JobRecord::Points(const std::string& name) const {
  const auto curve = curves_.find(name);
  return curve == curves_.end() ? std::vector<CurvePoint>()
                                : curve->second.Points();
}

std::string JobRecord::ToJson(const std::string& job) const {
  Json curves = Json::object();
  for (const auto& [name, curve] : curves_) {
    curves[name] = chief::ToJson(curve);
  }
  Json story = Json::array();
  for (const StoryEvent& event : story_.Events()) {
    story.push_back({std::round(event.unix_seconds * 1e3) / 1e3,
                     StoryKindName(event.kind), event.text});
  }
  const Json json = {
      {"job", job}, {"curves", std::move(curves)}, {"story", std::move(story)}};
  // Texts of members may have bytes that are no UTF-8: they are replaced.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<JobRecord> JobRecord::FromJson(absl::string_view text,
                                              const std::string& job) {
  // Without exceptions: a text that is no JSON gives a value that is no object.
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object() || !json.contains("job") || !json["job"].is_string() ||
      !json.contains("curves") || !json["curves"].is_object() ||
      json["curves"].size() > kMostCurves || !json.contains("story") ||
      !json["story"].is_array()) {
    return NoRecord("record");
  }
  if (json["job"].get<std::string>() != job) {
    return absl::FailedPreconditionError(absl::StrCat(
        "of another job, ", Excerpt(json["job"].get<std::string>())));
  }
  JobRecord record;
  for (const auto& [name, curve] : json["curves"].items()) {
    LOCKSTEP_ASSIGN_OR_RETURN(record.curves_[name], ToCurve(curve, name));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(record.story_, ToStory(json["story"]));
  return record;
}

}  // namespace lockstep::chief
