#include "common/wire/wire_codec.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/plain_text.h"
#include "common/text/utf8.h"
#include "common/wire/incarnation_bounds.h"

namespace lockstep {
namespace {

constexpr int kMaxDimensions = 64;

absl::Status CheckShape(const VariableSpec& variable) {
  int64_t elements = 1;
  for (int64_t dim : variable.shape) {
    // Not dim * elements > kMaxElements: the product could overflow.
    if (dim < 1 || dim > kMaxElements / elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", variable.name, "\" has shape ",
          ShapeString(variable.shape),
          "; dimensions must be positive and their product at most 2^56"));
    }
    elements *= dim;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckIncarnation(absl::string_view field, uint64_t incarnation) {
  if (incarnation <= kLargestIncarnation) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is ", incarnation, "; it must be at most ", kLargestIncarnation,
      ", so that a newer process of the task can follow"));
}

absl::StatusOr<Sender> FromProto(const v1::Identity& identity) {
  Sender sender;
  sender.job_id = identity.job_id();
  LOCKSTEP_ASSIGN_OR_RETURN(sender.task.type,
                            ParseTaskType(identity.task_type()));
  if (identity.task_index() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("identity.task_index is ",
                                                   identity.task_index(),
                                                   "; it must be 0 or more"));
  }
  // 0 is the default of the field, so a sender that forgot it is refused.
  if (identity.incarnation() == 0) {
    return absl::InvalidArgumentError(
        "identity.incarnation is 0; draw one at process start");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckIncarnation("identity.incarnation", identity.incarnation()));
  sender.task.index = identity.task_index();
  sender.incarnation = identity.incarnation();
  return sender;
}

v1::Identity ToProto(const Sender& sender) {
  v1::Identity identity;
  identity.set_job_id(sender.job_id);
  identity.set_task_type(std::string(TaskTypeName(sender.task.type)));
  identity.set_task_index(sender.task.index);
  identity.set_incarnation(sender.incarnation);
  return identity;
}

absl::StatusOr<VariableSpec> FromProto(const v1::VariableDescription& proto) {
  VariableSpec variable;
  variable.name = proto.name();
  if (variable.name.empty()) {
    return absl::InvalidArgumentError("a variable has no name; give it one");
  }
  if (variable.name.size() > kMaxPeerText ||
      proto.shape_size() > kMaxDimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", CutText(variable.name, 100),
                     "\" has a name of ", variable.name.size(), " bytes and ",
                     proto.shape_size(), " dimensions; at most ", kMaxPeerText,
                     " and ", kMaxDimensions, " are possible"));
  }
  variable.shape.assign(proto.shape().begin(), proto.shape().end());
  LOCKSTEP_RETURN_IF_ERROR(CheckShape(variable));
  LOCKSTEP_ASSIGN_OR_RETURN(variable.dtype, ParseDType(proto.dtype()));
  // Initializer::Kind and v1::Initializer have the same numbers, so a cast
  // converts.
  const int kind = proto.initializer();
  if (kind < 0 || kind > static_cast<int>(Initializer::Kind::kGiven)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", proto.name(), "\": initializer ", kind,
        " does not exist; the sender is of another program version"));
  }
  variable.initializer.kind = static_cast<Initializer::Kind>(kind);
  variable.initializer.a = proto.initializer_a();
  variable.initializer.b = proto.initializer_b();
  if (!v1::RowCut_IsValid(proto.row_cut()) ||
      (proto.row_cut() != v1::ROW_CUT_UNSPECIFIED && variable.shape.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", proto.name(), "\": row_cut ",
                     static_cast<int>(proto.row_cut()), " of shape ",
                     ShapeString(variable.shape),
                     "; a table has rows, and is cut by DIV, ", "MOD or KEY"));
  }
  variable.row_cut = static_cast<RowCut>(proto.row_cut());
  variable.buffer = proto.buffer();
  if (variable.buffer && variable.is_table()) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", proto.name(),
                     "\" is a table and a buffer; it can be one of them"));
  }
  return variable;
}

v1::VariableDescription ToProto(const VariableSpec& variable) {
  v1::VariableDescription proto;
  proto.set_name(variable.name);
  for (int64_t dim : variable.shape) proto.add_shape(dim);
  proto.set_dtype(std::string(DTypeName(variable.dtype)));
  proto.set_initializer(
      static_cast<v1::Initializer>(variable.initializer.kind));
  proto.set_initializer_a(variable.initializer.a);
  proto.set_initializer_b(variable.initializer.b);
  proto.set_row_cut(static_cast<v1::RowCut>(variable.row_cut));
  proto.set_buffer(variable.buffer);
  return proto;
}

absl::StatusOr<ExampleShape> FromProto(const v1::ExampleDescription& proto) {
  // Limit of each dimension, so that their product is a valid number of
  // elements.
  constexpr int64_t kMax = int64_t{1} << 18;
  const bool sizes =
      std::min({proto.height(), proto.width(), proto.channels()}) >= 1 &&
      std::max({proto.height(), proto.width(), proto.channels()}) <= kMax;
  if (!sizes || proto.classes() < 1 || proto.classes() > kMax * 4 ||
      proto.tokens() < 0 || proto.tokens() > kMaxElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("examples of ", proto.height(), "x", proto.width(), "x",
                     proto.channels(), ", ", proto.classes(), " classes and ",
                     proto.tokens(), " tokens; sizes must be in [1, ", kMax,
                     "], classes in [1, ", kMax * 4, "], tokens in [0, 2^56]"));
  }
  return ExampleShape{.height = proto.height(),
                      .width = proto.width(),
                      .channels = proto.channels(),
                      .classes = proto.classes(),
                      .tokens = proto.tokens()};
}

v1::ExampleDescription ToProto(const ExampleShape& examples) {
  v1::ExampleDescription proto;
  proto.set_height(examples.height);
  proto.set_width(examples.width);
  proto.set_channels(examples.channels);
  proto.set_classes(examples.classes);
  proto.set_tokens(examples.tokens);
  return proto;
}

v1::Part ToProto(const Part& part) {
  v1::Part proto;
  proto.set_variable(part.variable);
  proto.set_offset(part.offset);
  proto.set_count(part.count);
  proto.set_server(part.server);
  proto.set_index(part.index);
  proto.set_row_stride(part.row_stride);
  return proto;
}

Part FromProto(const v1::Part& part) {
  // Absent, row_stride is 0 and means adjacent rows.
  return {part.variable(), part.offset(),
          part.count(),    part.server(),
          part.index(),    std::max<int64_t>(part.row_stride(), 1)};
}

namespace {

// Checks the indices of a plan's parts, in the plan's order.
class PartIndices {
 public:
  PartIndices(bool mirrored, int num_servers, int num_parts)
      : next_(mirrored ? 0 : num_servers), used_(mirrored ? num_parts : 0) {}

  // True if `part`, of a known server, has an index that no part before has:
  // the next one of its server or, if servers hold all parts, any.
  bool Take(const Part& part) {
    if (used_.empty()) return part.index == next_[part.server]++;
    const bool free = part.index >= 0 &&
                      part.index < static_cast<int>(used_.size()) &&
                      !used_[part.index];
    if (free) used_[part.index] = true;
    return free;
  }

 private:
  std::vector<int> next_;   // by server
  std::vector<bool> used_;  // by index, if servers hold all parts
};

}  // namespace

absl::StatusOr<Plan> PlanFromProto(const v1::GetPlanResponse& response,
                                   int num_servers) {
  Plan plan;
  for (const v1::VariableDescription& proto : response.variables()) {
    LOCKSTEP_ASSIGN_OR_RETURN(VariableSpec variable, FromProto(proto));
    plan.variables.push_back(std::move(variable));
  }
  const int num_variables = static_cast<int>(plan.variables.size());
  plan.mirrored = response.mirrored();
  PartIndices indices(plan.mirrored, num_servers, response.parts_size());
  for (const v1::Part& proto : response.parts()) {
    const Part part = FromProto(proto);
    if (part.server >= num_servers) {
      return absl::InvalidArgumentError(
          absl::StrCat("the chief has put a part on ps ", part.server,
                       "; this process's cluster.ps has ", num_servers,
                       ": give all tasks the same cluster in TF_CONFIG"));
    }
    const bool known = part.variable >= 0 && part.variable < num_variables &&
                       part.server >= 0 && part.server < num_servers;
    if (!known || !indices.Take(part) ||
        !IsPartOf(plan.variables[part.variable], part)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "plan: part ", plan.parts.size(), " (", proto.ShortDebugString(),
          ") does not fit its variable or the ", num_servers, " servers"));
    }
    plan.parts.push_back(part);
  }
  return plan;
}

absl::StatusOr<GradientType> FromProto(absl::string_view field,
                                       v1::GradientType type) {
  switch (type) {
    case v1::GRADIENT_TYPE_UNSPECIFIED:
    case v1::VARIABLE:
      return GradientType::kVariable;
    case v1::BFLOAT16:
      return GradientType::kBFloat16;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          field, " is the number ", static_cast<int>(type),
          ", which has no name in this version; write VARIABLE or BFLOAT16"));
  }
}

v1::GradientType ToProto(GradientType type) {
  return type == GradientType::kBFloat16 ? v1::BFLOAT16 : v1::VARIABLE;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  const absl::Duration limit = absl::Seconds(kMaxDurationSeconds);
  // InfiniteDuration() becomes the longest that the message can hold.
  absl::Duration rest = std::clamp(duration, -limit, limit);
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
  // IDivDuration() truncates toward zero, so both numbers have the same sign,
  // as the message requires.
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return proto;
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  const absl::Duration limit = absl::Seconds(kMaxDurationSeconds);
  return std::clamp(
      absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos()),
      -limit, limit);
}

absl::StatusOr<RunSettings> FromProto(const v1::RunSettings& proto) {
  RunSettings settings;
  settings.revision = proto.revision();
  settings.replicas_to_aggregate = proto.replicas_to_aggregate();
  // An absent message stands for a job without changes.
  if (proto.learning_rate_scale() != 0) {
    settings.learning_rate_scale = proto.learning_rate_scale();
  }
  settings.paused = proto.paused();
  settings.workers = {proto.workers().begin(), proto.workers().end()};
  const std::vector<int>& workers = settings.workers;
  // Strictly ascending: a worker that is listed twice would count twice.
  const bool ascending =
      std::adjacent_find(workers.begin(), workers.end(),
                         std::greater_equal<>()) == workers.end() &&
      (workers.empty() ||
       (workers.front() >= 0 && workers.back() < RunSettings::kMaxWorkers));
  if (settings.revision >= 0 && settings.replicas_to_aggregate >= 0 &&
      settings.learning_rate_scale > 0 &&
      std::isfinite(settings.learning_rate_scale) && ascending) {
    return settings;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "settings: revision ", settings.revision, ", replicas_to_aggregate ",
      settings.replicas_to_aggregate, " must be >= 0, learning_rate_scale ",
      settings.learning_rate_scale, " > 0, and the ", workers.size(),
      " workers ascending in [0, ", RunSettings::kMaxWorkers, ")"));
}

v1::RunSettings ToProto(const RunSettings& settings) {
  v1::RunSettings proto;
  proto.set_revision(settings.revision);
  proto.set_replicas_to_aggregate(settings.replicas_to_aggregate);
  proto.set_learning_rate_scale(settings.learning_rate_scale);
  proto.set_paused(settings.paused);
  proto.mutable_workers()->Assign(settings.workers.begin(),
                                  settings.workers.end());
  return proto;
}

google::protobuf::RepeatedPtrField<v1::Figure> ToProto(
    const std::vector<NamedFigure>& figures) {
  google::protobuf::RepeatedPtrField<v1::Figure> protos;
  for (const NamedFigure& figure : figures) {
    v1::Figure& proto = *protos.Add();
    proto.set_name(figure.name);
    proto.set_value(figure.value);
  }
  return protos;
}

std::vector<NamedFigure> FromProto(
    const google::protobuf::RepeatedPtrField<v1::Figure>& protos) {
  std::vector<NamedFigure> figures;
  for (const v1::Figure& proto : protos) {
    figures.push_back({proto.name(), proto.value()});
  }
  return figures;
}

namespace {

// Passes and waits of a year or more are a year long.
constexpr int64_t kLongestPass = int64_t{365} * 24 * 3600 * 1'000'000;

uint64_t Micros(absl::Duration duration) {
  return static_cast<uint64_t>(std::clamp<int64_t>(
      absl::ToInt64Microseconds(duration), 0, kLongestPass));
}

// A count of a peer, which may be any number. The limit is out of reach in
// years, and lets sums of the counts of all workers be made.
int64_t FromCount(int64_t count) {
  return std::clamp<int64_t>(count, 0, Progress::kMostCounted);
}
int64_t FromCount(uint64_t count) {
  return static_cast<int64_t>(
      std::min<uint64_t>(count, Progress::kMostCounted));
}

absl::Duration FromMicros(uint64_t micros) {
  return absl::Microseconds(
      static_cast<int64_t>(std::min<uint64_t>(micros, kLongestPass)));
}

// A time of a peer, which may be below 0 or of any length.
absl::Duration FromTime(const google::protobuf::Duration& time) {
  return std::clamp(FromProto(time), absl::ZeroDuration(),
                    absl::Microseconds(kLongestPass));
}

}  // namespace

ActivityKind FromProto(v1::ActivityKind kind) {
  switch (kind) {
    case v1::ACTIVITY_WAITS:
      return ActivityKind::kWaits;
    case v1::ACTIVITY_COMPUTES:
      return ActivityKind::kComputes;
    default:  // a newer worker's
      return ActivityKind::kOther;
  }
}

v1::WorkerProgress ToProto(const Progress& progress) {
  v1::WorkerProgress proto;
  proto.set_local_step(progress.local_step);
  proto.set_passes(progress.passes);
  proto.set_accepted(progress.accepted);
  proto.set_stale(progress.stale);
  proto.set_duplicate(progress.duplicate);
  *proto.mutable_waiting() = ToProto(progress.waiting);
  proto.set_loss(progress.loss);
  proto.set_examples(progress.examples);
  proto.set_computed(progress.computed);
  proto.set_activity(ToUtf8(progress.activity));
  proto.set_activity_kind(
      static_cast<v1::ActivityKind>(progress.activity_kind));
  *proto.mutable_activity_age() = ToProto(progress.activity_age);
  proto.set_trouble(ToUtf8(progress.trouble));
  proto.set_cannot_score(progress.cannot_score);
  *proto.mutable_figures() = ToProto(progress.figures);
  for (const PassTime& pass : progress.pass_times) {
    // One number for each pass: the lowest bit says whether its gradient was
    // dropped.
    proto.add_pass_times(2 * Micros(pass.computed) + (pass.dropped ? 1 : 0));
  }
  proto.set_pass_age(Micros(progress.pass_age));
  proto.set_micro_batches(progress.micro_batches);
  proto.set_micro_batches_time(Micros(progress.micro_batches_time));
  proto.set_pushes(progress.pushes);
  proto.set_pushes_time(Micros(progress.pushes_time));
  return proto;
}

Progress FromProto(const v1::WorkerProgress& progress) {
  Progress decoded;
  decoded.local_step = FromCount(progress.local_step());
  decoded.passes = FromCount(progress.passes());
  decoded.accepted = FromCount(progress.accepted());
  decoded.stale = FromCount(progress.stale());
  decoded.duplicate = FromCount(progress.duplicate());
  decoded.waiting = FromTime(progress.waiting());
  decoded.loss = progress.loss();
  decoded.examples = FromCount(progress.examples());
  // Texts of a peer are cut, so that it cannot fill the chief's memory.
  decoded.activity = CutText(progress.activity());
  decoded.activity_kind = FromProto(progress.activity_kind());
  decoded.activity_age = FromTime(progress.activity_age());
  decoded.computed = FromCount(progress.computed());
  decoded.trouble = CutText(progress.trouble());
  decoded.cannot_score = progress.cannot_score();
  for (const uint64_t pass : progress.pass_times()) {
    // A peer may send more; the rest is dropped.
    if (decoded.pass_times.size() == Progress::kPassTimes) break;
    decoded.pass_times.push_back({FromMicros(pass / 2), pass % 2 == 1});
  }
  decoded.pass_age = FromMicros(progress.pass_age());
  decoded.micro_batches = FromCount(progress.micro_batches());
  decoded.micro_batches_time = FromMicros(progress.micro_batches_time());
  decoded.pushes = FromCount(progress.pushes());
  decoded.pushes_time = FromMicros(progress.pushes_time());
  decoded.figures = FromProto(progress.figures());
  // Figures are for people, and no reason to refuse a heartbeat.
  if (!CheckFigures(decoded.figures).ok()) decoded.figures.clear();
  return decoded;
}

v1::ProcessLoad ToProto(const ProcessLoad& load) {
  v1::ProcessLoad proto;
  proto.set_resident_bytes(load.resident_bytes);
  proto.set_memory_limit_bytes(load.memory_limit_bytes);
  proto.set_processors(load.processors);
  return proto;
}

ProcessLoad FromProto(const v1::ProcessLoad& load) {
  ProcessLoad decoded;
  // A load is only for display: a wrong number counts as unknown and does not
  // refuse the heartbeat.
  decoded.resident_bytes = std::max<int64_t>(load.resident_bytes(), 0);
  decoded.memory_limit_bytes = std::max<int64_t>(load.memory_limit_bytes(), 0);
  if (std::isfinite(load.processors()) && load.processors() > 0) {
    decoded.processors = load.processors();
  }
  return decoded;
}

v1::LeaveCause ToProto(LeaveCause cause) {
  return static_cast<v1::LeaveCause>(cause);
}

LeaveCause FromProto(v1::LeaveCause cause) {
  switch (cause) {
    case v1::LEAVE_DONE:
    case v1::LEAVE_END_OF_INPUT:
    case v1::LEAVE_CANNOT_TAKE_PART:
    case v1::LEAVE_NO_ROOM:
      return static_cast<LeaveCause>(cause);
    default:
      // A cause of a newer version counts as an ordinary stop.
      return LeaveCause::kStopped;
  }
}

}  // namespace lockstep
