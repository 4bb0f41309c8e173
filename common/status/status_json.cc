#include "common/status/status_json.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Rounds to six significant digits: more are noise in a training figure. JSON
// has no NaN or infinity, so these become null.
Json Figure(double value) {
  double rounded = value;
  if (!std::isfinite(value) ||
      !absl::SimpleAtod(absl::StrFormat("%.6g", value), &rounded)) {
    return nullptr;
  }
  return rounded;
}

// Returns seconds, rounded to microseconds.
Json Seconds(absl::Duration duration) {
  return std::round(absl::ToDoubleSeconds(duration) * 1e6) / 1e6;
}

Json Seconds(const std::optional<absl::Duration>& duration) {
  return duration.has_value() ? Seconds(*duration) : Json(nullptr);
}

Json Figures(const std::vector<std::pair<std::string, double>>& figures) {
  Json json = Json::object();
  for (const auto& [name, value] : figures) json[name] = Figure(value);
  return json;
}

Json ToJson(const WorkerCounts& counts) {
  return {{"local_step", counts.local_step},
          {"passes", counts.passes},
          {"accepted", counts.accepted},
          {"stale", counts.stale},
          {"waiting_seconds", Seconds(counts.waiting)},
          {"activity", counts.activity},
          {"activity_age_seconds", Seconds(counts.activity_age)},
          {"figures", Figures(counts.figures)}};
}

Json ToJson(const LoadStatus& load) {
  return {{"resident_bytes", load.resident_bytes},
          {"memory_limit_bytes", load.memory_limit_bytes},
          {"processors", Figure(load.processors)}};
}

Json ToJson(const MemberStatus& member) {
  return {
      {"task", member.task},
      {"state", std::string(MemberStateName(member.state))},
      {"since_heartbeat_seconds", Seconds(member.since_heartbeat)},
      {"progress",
       member.counts.has_value() ? ToJson(*member.counts) : Json(nullptr)},
      {"load", member.load.has_value() ? ToJson(*member.load) : Json(nullptr)}};
}

Json ToJson(const Evaluation& evaluation) {
  // The evaluator of a user's program reports figures of its own, and no
  // accuracy.
  if (!evaluation.figures.empty()) {
    return {{"global_step", evaluation.step},
            {"figures", Figures(evaluation.figures)}};
  }
  return {{"global_step", evaluation.step},
          {"loss", Figure(evaluation.loss)},
          {"accuracy", Figure(evaluation.accuracy)},
          {"auc", evaluation.auc.has_value() ? Figure(*evaluation.auc)
                                             : Json(nullptr)}};
}

Json ToJson(const WaitStatus& wait) {
  return {{"owner", wait.owner},
          {"waits_for", wait.waits_for},
          {"since_seconds", Seconds(wait.since)}};
}

Json ToJson(const Notice& notice) {
  return {{"number", notice.number}, {"text", notice.text}};
}

Json ToJson(const LossStatus& losses) {
  return {{"recoveries", losses.recoveries},
          {"steps_redone", losses.steps_redone},
          {"steps_repeated", losses.steps_repeated},
          {"stood_still_seconds", Seconds(losses.stood_still)}};
}

Json ToJson(const DeathStatus& death) {
  return {{"task", death.task},
          {"reason", death.reason},
          {"held", death.held},
          {"redone", death.redone},
          {"since_seconds", Seconds(death.since)},
          {"stood_still_seconds", Seconds(death.stood_still)}};
}

Json ToJson(const Settings& settings) {
  return {{"revision", settings.revision},
          {"replicas_to_aggregate", settings.replicas_to_aggregate},
          {"learning_rate", Figure(settings.learning_rate)},
          {"learning_rate_now", Figure(settings.learning_rate_now)},
          {"paused", settings.paused},
          {"workers", settings.workers},
          {"micro_batches_per_step", settings.micro_batches_per_step},
          {"micro_batches_per_push", settings.micro_batches_per_push}};
}

Json ToJson(const RunResult& result) {
  return {{"state", std::string(JobStateName(result.state))},
          {"exit_code", result.exit_code},
          {"summary", result.summary},
          {"ended_at_unix_seconds", absl::ToUnixSeconds(result.ended_at)}};
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? ToJson(*value) : Json(nullptr);
}

template <typename T>
Json ToArray(const std::vector<T>& values) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(ToJson(value));
  return array;
}

JobState StateOf(const std::string& name) {
  for (const JobState state :
       {JobState::kDone, JobState::kFailed, JobState::kStopped}) {
    if (name == JobStateName(state)) return state;
  }
  return JobState::kUnknown;
}

}  // namespace

std::string FormatStatusJson(const JobStatus& status, int indent,
                             const std::optional<RunResult>& result) {
  Json json = {
      {"job_name", status.job_name},
      {"job_id", status.job_id},
      {"state", std::string(ShownState(status))},
      {"reason", status.reason},
      {"global_step", status.step},
      {"train_steps", status.train_steps},
      {"training_seconds", Seconds(status.training_time)},
      {"loss", status.has_loss() ? Figure(status.loss) : Json(nullptr)},
      {"examples_per_second", Figure(status.examples_per_second)},
      {"example_unit", status.example_unit},
      {"last_checkpoint_step", status.last_checkpoint_step >= 0
                                   ? Json(status.last_checkpoint_step)
                                   : Json(nullptr)},
      {"last_checkpoint_age_seconds", Seconds(status.last_checkpoint_age)},
      {"checkpoint_trouble", status.checkpoint_trouble},
      {"security_troubles", status.security_troubles},
      {"chief_epoch", status.epoch}};
  json["settings"] = ToJson(status.settings);
  json["evaluation"] = OrNull(status.evaluation);
  json["members"] = ToArray(status.members);
  json["waits"] = ToArray(status.waits);
  json["losses"] = ToJson(status.losses);
  json["deaths"] = ToArray(status.deaths);
  json["notices"] = ToArray(status.notices);
  json["result"] = OrNull(result);
  // Replaces bytes that are not UTF-8: dump() would throw.
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<RunResult> ParseResultJson(absl::string_view text,
                                          absl::string_view source) {
  // Without exceptions: broken text becomes a discarded value, which is no
  // object.
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  const auto result = json.is_object() ? json.find("result") : json.end();
  const auto has = [&](const char* name, auto is) {
    const auto value = result->find(name);
    return value != result->end() && is(*value);
  };
  const auto is_text = [](const Json& value) { return value.is_string(); };
  const auto is_number = [](const Json& value) {
    return value.is_number_integer();
  };
  if (!json.is_object() || result == json.end() || !result->is_object() ||
      !has("state", is_text) || !has("summary", is_text) ||
      !has("exit_code", is_number) ||
      !has("ended_at_unix_seconds", is_number)) {
    return absl::InvalidArgumentError(absl::StrCat(
        source,
        ": is no result of a run; remove the file, or give another "
        "--log_dir"));
  }
  return RunResult{.state = StateOf((*result)["state"].get<std::string>()),
                   .exit_code = (*result)["exit_code"].get<int>(),
                   .summary = (*result)["summary"].get<std::string>(),
                   .ended_at = absl::FromUnixSeconds(
                       (*result)["ended_at_unix_seconds"].get<int64_t>())};
}

}  // namespace lockstep
