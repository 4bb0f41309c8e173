// Messages that members of a job and its servers send, and texts of operators:
// a line with the name of the message or text, as "JobHistory", and the message
// in text format. Decoded values must keep their bounds, and be the same after
// another round.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/operators/job_history_codec.h"
#include "common/status/status_codec.h"
#include "common/status/status_json.h"
#include "common/wire/standing_codec.h"
#include "common/wire/wire_codec.h"
#include "deploy/cli/logs/log_story.h"
#include "deploy/cli/status/status_report.h"
#include "deploy/cli/status/steer_command.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

// False if `text` is no such message.
template <class Message>
bool Parse(absl::string_view text, Message& message) {
  google::protobuf::TextFormat::Parser parser;
  class Silent : public google::protobuf::io::ErrorCollector {
    void AddError(int, int, const std::string&) override {}
  } silent;
  parser.RecordErrorsTo(&silent);
  return parser.ParseFromString(std::string(text), &message);
}

void ReadHistory(absl::string_view text) {
  v1::JobHistory message;
  if (!Parse(text, message)) return;
  using chief::StatusTable;
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const StatusTable::History history = chief::HistoryFromProto(message, now);
  Require(history.training_time >= absl::ZeroDuration());
  Require(history.deaths.size() <= StatusTable::kDeaths);
  Require(history.losses.recoveries >= 0 && history.losses.steps_redone >= 0 &&
          history.losses.steps_repeated >= 0 &&
          history.losses.stood_still >= absl::ZeroDuration());
  for (const StatusTable::Death& death : history.deaths) {
    for (const std::string& each :
         {death.task, death.reason, death.held, death.redone}) {
      Require(each.size() <= 1024);
    }
  }
  const auto again =
      chief::HistoryFromProto(chief::HistoryToProto(history, now), now);
  Require(again.deaths.size() == history.deaths.size());
  Require(again.losses.steps_redone == history.losses.steps_redone);
}

void ReadStatus(absl::string_view text) {
  v1::GetStatusResponse message;
  if (!Parse(text, message)) return;
  const JobStatus status = DecodeStatus(message);
  const std::string json = FormatStatusJson(status);
  Require(nlohmann::json::accept(json));
  Require(!cli::FormatStatusReport(status, /*width=*/60).empty());
}

void ReadShard(absl::string_view text) {
  v1::CreateShardResponse message;
  if (!Parse(text, message)) return;
  const auto standings = FromProto(message.workers());
  if (!standings.ok()) return;
  StandingMessages again;
  FillStandings(*standings, again);
  Require(again.size() == message.workers_size());
}

void ReadSettings(absl::string_view text) {
  v1::RunSettings message;
  if (!Parse(text, message)) return;
  const auto settings = FromProto(message);
  if (!settings.ok()) return;
  const auto again = FromProto(ToProto(*settings));
  Require(again.ok() && *again == *settings);
}

void ReadProgress(absl::string_view text) {
  v1::WorkerProgress message;
  if (!Parse(text, message)) return;
  const Progress progress = FromProto(message);
  Require(ToProto(FromProto(ToProto(progress))).SerializeAsString() ==
          ToProto(progress).SerializeAsString());
}

void ReadLoad(absl::string_view text) {
  v1::ProcessLoad message;
  if (!Parse(text, message)) return;
  const ProcessLoad load = FromProto(message);
  Require(ToProto(FromProto(ToProto(load))).SerializeAsString() ==
          ToProto(load).SerializeAsString());
}

void ReadResult(absl::string_view text) {
  ParseResultJson(text, "a file").status().IgnoreError();
}

void ReadArguments(absl::string_view text) {
  cli::ParseSettings({std::string(text)}).status().IgnoreError();
  const auto since = cli::ParseSince(text, absl::FromUnixSeconds(1'800'000'000),
                                     absl::UTCTimeZone());
  if (since.ok()) Require(*since < absl::InfiniteFuture());
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\n');
  if (end == absl::string_view::npos) return 0;
  const absl::string_view name = input.substr(0, end);
  const absl::string_view text = input.substr(end + 1);
  if (name == "JobHistory") lockstep::ReadHistory(text);
  if (name == "GetStatusResponse") lockstep::ReadStatus(text);
  if (name == "CreateShardResponse") lockstep::ReadShard(text);
  if (name == "RunSettings") lockstep::ReadSettings(text);
  if (name == "WorkerProgress") lockstep::ReadProgress(text);
  if (name == "ProcessLoad") lockstep::ReadLoad(text);
  if (name == "result") lockstep::ReadResult(text);
  if (name == "arguments") lockstep::ReadArguments(text);
  return 0;
}
