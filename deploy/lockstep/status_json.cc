#include "deploy/lockstep/status_json.h"

#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double Seconds(absl::Duration duration) {
  return absl::ToDoubleSeconds(duration);
}

Json ToJson(const WorkerCounts& counts) {
  return {{"local_step", counts.local_step},
          {"passes", counts.passes},
          {"accepted", counts.accepted},
          {"stale", counts.stale},
          {"waiting", Seconds(counts.waiting)},
          {"activity", counts.activity},
          {"activity_age", Seconds(counts.activity_age)}};
}

Json ToJson(const MemberStatus& member) {
  Json json = {{"task", member.task}, {"state", member.state}};
  if (member.since_heartbeat.has_value()) {
    json["since_heartbeat"] = Seconds(*member.since_heartbeat);
  }
  if (member.counts.has_value()) json["progress"] = ToJson(*member.counts);
  return json;
}

Json ToJson(const Evaluation& evaluation) {
  Json json = {{"global_step", evaluation.step},
               {"loss", evaluation.loss},
               {"accuracy", evaluation.accuracy}};
  if (evaluation.auc.has_value()) json["auc"] = *evaluation.auc;
  return json;
}

Json ToJson(const WaitStatus& wait) {
  return {{"owner", wait.owner},
          {"waits_for", wait.waits_for},
          {"since", Seconds(wait.since)}};
}

Json ToJson(const DeathStatus& death) {
  Json json = {{"task", death.task},
               {"reason", death.reason},
               {"held", death.held},
               {"redone", death.redone},
               {"since", Seconds(death.since)}};
  if (death.stood_still.has_value()) {
    json["stood_still"] = Seconds(*death.stood_still);
  }
  return json;
}

Json ToJson(const Settings& settings) {
  return {{"revision", settings.revision},
          {"replicas_to_aggregate", settings.replicas_to_aggregate},
          {"learning_rate", settings.learning_rate},
          {"paused", settings.paused},
          {"workers", settings.workers}};
}

template <typename T>
Json ToArray(const std::vector<T>& values) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(ToJson(value));
  return array;
}

}  // namespace

std::string FormatStatusJson(const JobStatus& status, int indent) {
  Json json = {{"job_name", status.job_name},
               {"job_id", status.job_id},
               {"state", std::string(JobStateName(status.state))},
               {"reason", status.reason},
               {"global_step", status.step},
               {"train_steps", status.train_steps},
               {"training_time", Seconds(status.training_time)},
               {"loss", status.loss},
               {"examples_per_second", status.examples_per_second},
               {"example_unit", status.example_unit},
               {"last_checkpoint_step", status.last_checkpoint_step},
               {"epoch", status.epoch}};
  json["settings"] = ToJson(status.settings);
  if (!status.checkpoint_trouble.empty()) {
    json["checkpoint_trouble"] = status.checkpoint_trouble;
  }
  if (status.evaluation.has_value()) {
    json["evaluation"] = ToJson(*status.evaluation);
  }
  json["members"] = ToArray(status.members);
  json["waits"] = ToArray(status.waits);
  json["deaths"] = ToArray(status.deaths);
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep
