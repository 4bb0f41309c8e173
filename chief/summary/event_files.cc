#include "chief/summary/event_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/job/codec/job_config_codec.h"
#include "common/records/tfrecord.h"
#include "google/protobuf/text_format.h"
#include "lockstep/v1/job.pb.h"
#include "lockstep/v1/tensorboard_event.pb.h"

namespace lockstep::chief {
namespace {

constexpr int kFloat = 1;  // TensorFlow's DT_FLOAT
// The largest number of 16 digits: TensorBoard compares names, not numbers.
constexpr int64_t kLastMicros = 9'999'999'999'999'999;

void AppendEvent(const v1::TensorBoardEvent& event, std::string& bytes) {
  AppendTfRecord(event.SerializeAsString(), bytes);
}

v1::TensorBoardEvent Event(int64_t step, absl::Time wall_time) {
  v1::TensorBoardEvent event;
  event.set_step(step);
  event.set_wall_time(absl::ToDoubleSeconds(wall_time - absl::UnixEpoch()));
  return event;
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// True for parts of a job that are about its environment, not its computation.
bool IsElsewhere(const FieldDescriptor& field) {
  return field.message_type() != nullptr &&
         (field.name() == "data" || field.name() == "checkpoint" ||
          field.name() == "summary" || field.name() == "placement" ||
          field.name() == "partitioner" ||
          field.message_type()->full_name() == "google.protobuf.Duration");
}

std::string TextOf(const Message& message, const FieldDescriptor& field) {
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field, -1,
                                                        &text);
  return std::string(absl::StripSuffix(absl::StripPrefix(text, "\""), "\""));
}

void AddFields(const Message& message, const std::string& prefix,
               std::map<std::string, std::string>& out) {
  std::vector<const FieldDescriptor*> fields;  // those that are set
  const Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    // A parameter in TensorBoard's table is one value.
    if (field->is_repeated() || IsElsewhere(*field)) continue;
    const std::string name = prefix + field->name();
    if (field->message_type() == nullptr) {
      out[name] = TextOf(message, *field);
    } else {
      AddFields(reflection.GetMessage(message, field), name + ".", out);
    }
  }
}

constexpr char kBeforeTime[] = "events.out.tfevents.";
constexpr char kAfterTime[] = ".lockstep";

// A name after those of all event files in `folder`, of `started` if that is
// such a name: the clock may have been set back since an earlier process.
std::string NewName(const std::string& folder, absl::Time started) {
  int64_t micros = absl::ToUnixMicros(started);
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view digits = name;
    int64_t earlier = 0;
    if (absl::ConsumePrefix(&digits, kBeforeTime) &&
        absl::ConsumeSuffix(&digits, kAfterTime) &&
        absl::SimpleAtoi(digits, &earlier) && earlier < kLastMicros) {
      micros = std::max(micros, earlier + 1);
    }
  }
  return absl::StrFormat("%s%016d%s", kBeforeTime, micros, kAfterTime);
}

}  // namespace

std::map<std::string, std::string> HyperParameters(const JobConfig& job) {
  const v1::JobConfig proto = ToProto(job);
  std::map<std::string, std::string> parameters;
  AddFields(proto, "", parameters);
  // Neither is a hyper-parameter: the name is the run's own, and a job may be
  // given more steps.
  for (const char* other : {"name", "train_steps"}) parameters.erase(other);
  return parameters;
}

EventFiles::EventFiles(std::string directory, absl::Time started,
                       const JobConfig& job)
    : directory_(std::move(directory)),
      started_(started),
      job_name_(job.name),
      parameters_(HyperParameters(job)) {}

std::string EventFiles::Beginning(const std::string& run, int64_t step,
                                  absl::Time wall_time) const {
  std::string bytes;
  v1::TensorBoardEvent version = Event(step, wall_time);
  version.set_file_version("brain.Event:2");
  AppendEvent(version, bytes);
  v1::TensorBoardEvent back = Event(step, wall_time);
  // TensorBoard drops the points of this and later steps when it reads this
  // record.
  back.mutable_session_log()->set_status(v1::TensorBoardSession::START);
  AppendEvent(back, bytes);
  // The table of hyper-parameters belongs to the job's own run.
  if (!run.empty()) return bytes;

  v1::TensorBoardHParams table;
  v1::TensorBoardHParams::Start& start = *table.mutable_session_start_info();
  start.set_group_name(job_name_);
  start.set_start_time_secs(
      absl::ToDoubleSeconds(started_ - absl::UnixEpoch()));
  for (const auto& [name, text] : parameters_) {
    google::protobuf::Value& value = (*start.mutable_hparams())[name];
    // TensorBoard sorts and plots parameters that are numbers.
    if (double number; absl::SimpleAtod(text, &number)) {
      value.set_number_value(number);
    } else {
      value.set_string_value(text);
    }
  }
  v1::TensorBoardEvent parameters = Event(step, wall_time);
  v1::TensorBoardValue& value = *parameters.mutable_summary()->add_value();
  value.set_tag("_hparams_/session_start_info");
  value.mutable_tensor()->set_dtype(kFloat);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("hparams");
  value.mutable_metadata()->mutable_plugin_data()->set_content(
      table.SerializeAsString());
  AppendEvent(parameters, bytes);
  return bytes;
}

absl::Status EventFiles::Append(const std::vector<SummaryPoints>& runs,
                                absl::Time wall_time) {
  for (const SummaryPoints& points : runs) {
    if (points.values.empty()) continue;
    LOCKSTEP_RETURN_IF_ERROR(AppendTo(points, wall_time));
  }
  return absl::OkStatus();
}

absl::Status EventFiles::AppendTo(const SummaryPoints& points,
                                  absl::Time wall_time) {
  auto found = files_.find(points.run);
  if (found == files_.end()) {
    const std::string folder =
        (std::filesystem::path(directory_) / points.run).string();
    LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(folder));
    // TensorBoard reads a folder's files in the order of their names.
    const std::filesystem::path path =
        std::filesystem::path(folder) / NewName(folder, started_);
    LOCKSTEP_ASSIGN_OR_RETURN(PosixFile file,
                              PosixFile::CreateNew(path.string()));
    found = files_.emplace(points.run, File{std::move(file)}).first;
  }
  File& file = found->second;
  std::string bytes;
  // The job has gone back, or the file begins.
  if (file.size == 0 || points.step < file.step) {
    bytes = Beginning(points.run, points.step, wall_time);
  }
  v1::TensorBoardEvent event = Event(points.step, wall_time);
  for (const NamedFigure& figure : points.values) {
    v1::TensorBoardValue& value = *event.mutable_summary()->add_value();
    value.set_tag(figure.name);
    value.set_simple_value(static_cast<float>(figure.value));
  }
  AppendEvent(event, bytes);
  // At the end of the complete records: one that was written in part is
  // overwritten.
  LOCKSTEP_RETURN_IF_ERROR(file.file.WriteAt(file.size, bytes));
  file.size += bytes.size();
  file.step = points.step;
  return absl::OkStatus();
}

}  // namespace lockstep::chief
