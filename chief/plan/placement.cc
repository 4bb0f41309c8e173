#include "chief/plan/placement.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/plan/partitioner.h"
#include "chief/plan/placement_strategy.h"
#include "common/base/status_macros.h"
#include "common/job/strategy_checks.h"

namespace lockstep::chief {
namespace {

// Every process holds a whole plan and receives it in one message.
constexpr int64_t kMaxParts = int64_t{1} << 20;
constexpr int64_t kMaxPartBytes = int64_t{1} << 30;

// Checks a variable, and subtracts its elements from `room`.
absl::Status CheckVariable(const VariableSpec& variable,
                           std::set<std::string>& names, int64_t& room) {
  if (variable.name.empty()) {
    return absl::InvalidArgumentError("a variable has no name; give it one");
  }
  if (!names.insert(variable.name).second) {
    return absl::InvalidArgumentError(absl::StrCat(
        "two variables are named \"", variable.name, "\"; rename one"));
  }
  if (ElementSize(variable.dtype) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", variable.name, "\" has an unknown dtype, ",
                     static_cast<int>(variable.dtype)));
  }
  int64_t elements = 1;
  for (int64_t dim : variable.shape) {
    // A division, since the product may overflow.
    if (dim < 1 || dim > room / elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", variable.name, "\" has shape ",
          ShapeString(variable.shape),
          "; dimensions must be positive and the model at most 2^56 elements"));
    }
    elements *= dim;
  }
  if (variable.is_table() && variable.shape.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", variable.name, "\" is a table without rows"));
  }
  room -= elements;
  return absl::OkStatus();
}

absl::Status CheckNumParts(int64_t parts, const VariableSpec& variable,
                           int64_t max_part_bytes) {
  if (parts <= kMaxParts) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "max_part_bytes is ", max_part_bytes, ", which cuts the model into ",
      parts, " parts up to variable \"", variable.name, "\"; raise it so that ",
      "there are at most ", kMaxParts));
}

// The parts of a variable, in order, not yet placed.
using Slices = std::vector<Part>;

// Consecutive parts of these lengths.
Slices OneAfterTheOther(const std::vector<int64_t>& counts) {
  Slices slices;
  int64_t offset = 0;
  for (const int64_t count : counts) {
    slices.push_back({.offset = offset, .count = count});
    offset += count;
  }
  return slices;
}

absl::StatusOr<Slices> CutByBytes(const VariableSpec& variable,
                                  int64_t max_part_bytes,
                                  int64_t parts_before) {
  const auto size = static_cast<int64_t>(ElementSize(variable.dtype));
  const int64_t limit = max_part_bytes / size;
  if (limit < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_part_bytes is ", max_part_bytes, "; it must be at least the ",
        size, " bytes of an element of \"", variable.name, "\""));
  }
  const int64_t elements = NumElements(variable.shape);
  LOCKSTEP_RETURN_IF_ERROR(CheckNumParts(
      parts_before + (elements - 1) / limit + 1, variable, max_part_bytes));
  Slices slices;
  for (int64_t offset = 0; offset < elements; offset += limit) {
    slices.push_back(
        {.offset = offset, .count = std::min(limit, elements - offset)});
  }
  return slices;
}

absl::StatusOr<Partition> PartitionOf(const VariableSpec& variable,
                                      const PartitionerConfig& config) {
  const PartitionInput input{variable.shape,
                             static_cast<int64_t>(ElementSize(variable.dtype))};
  switch (config.kind) {
    case PartitionerConfig::Kind::kFixedSize:
      return FixedSizePartition(input, config.num_shards);
    case PartitionerConfig::Kind::kAxisSize:
      return AxisSizePartition(input, config.max_shard_bytes,
                               config.max_shards);
    case PartitionerConfig::Kind::kMinMax:
      return MinMaxPartition(input, config.max_partitions,
                             config.min_slice_bytes);
    case PartitionerConfig::Kind::kMaxPartBytes:
      break;
  }
  return absl::InvalidArgumentError("partitioner.kind has no rule for rows");
}

absl::StatusOr<Slices> CutByRows(const VariableSpec& variable,
                                 const PartitionerConfig& config,
                                 int64_t parts_before) {
  const int64_t elements = NumElements(variable.shape);
  // A scalar has no rows, and is one part.
  if (variable.shape.empty()) return OneAfterTheOther({elements});
  LOCKSTEP_ASSIGN_OR_RETURN(Partition partition, PartitionOf(variable, config));
  if (partition[0] > kMaxParts - parts_before) {
    return absl::InvalidArgumentError(absl::StrCat(
        "partitioner: variable \"", variable.name, "\" is cut into ",
        partition[0], " parts; a model may have at most ", kMaxParts));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<SlicePart> parts,
                            CutVariable(variable.shape, partition));
  const int64_t width = elements / variable.shape[0];
  std::vector<int64_t> sizes;
  for (const SlicePart& part : parts) sizes.push_back(part.length[0] * width);
  // The first part is the largest.
  const auto bytes =
      sizes[0] * static_cast<int64_t>(ElementSize(variable.dtype));
  if (bytes <= kMaxPartBytes || variable.is_table()) {
    return OneAfterTheOther(sizes);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "partitioner: a part of variable \"", variable.name, "\" has ", bytes,
      " bytes; cut it into more parts, of at most ", kMaxPartBytes));
}

// A step waits for a gradient of each part, even of a table's part without
// rows: so tables get one part per server, unless the job says otherwise.
absl::StatusOr<Slices> CutTable(const VariableSpec& table, int num_servers,
                                PartitionerConfig config,
                                int64_t parts_before) {
  if (config.kind == PartitionerConfig::Kind::kMaxPartBytes) {
    config.kind = PartitionerConfig::Kind::kFixedSize;
    config.num_shards = num_servers;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Slices slices,
                            CutByRows(table, config, parts_before));
  if (table.row_cut == RowCut::kDiv) return slices;
  const int64_t width = RowWidth(table.shape);
  for (size_t i = 0; i < slices.size(); ++i) {
    // Rows alternate between the parts: part i has the rows i, i + parts, and
    // so on.
    slices[i].offset = static_cast<int64_t>(i) * width;
    slices[i].row_stride = static_cast<int64_t>(slices.size());
  }
  return slices;
}

absl::StatusOr<Slices> Cut(const VariableSpec& variable, int num_servers,
                           int64_t max_part_bytes,
                           const PartitionerConfig& config,
                           int64_t parts_before) {
  if (variable.is_table()) {
    return CutTable(variable, num_servers, config, parts_before);
  }
  if (config.kind == PartitionerConfig::Kind::kMaxPartBytes) {
    return CutByBytes(variable, max_part_bytes, parts_before);
  }
  return CutByRows(variable, config, parts_before);
}

// Chooses servers by the job's placement strategy.
class ServerChooser {
 public:
  ServerChooser(const PlacementConfig& config, int num_servers)
      : config_(config),
        num_servers_(num_servers),
        greedy_(num_servers),
        round_robin_(num_servers) {}

  absl::StatusOr<int> Next(const std::string& name, int64_t bytes) {
    switch (config_.strategy) {
      case PlacementConfig::Strategy::kRoundRobin:
        return round_robin_.Next();
      case PlacementConfig::Strategy::kNameHash:
        return ServerByName(name, config_.seed, num_servers_);
      case PlacementConfig::Strategy::kGreedy:
        break;
    }
    return greedy_.Next(bytes);
  }

 private:
  const PlacementConfig config_;
  const int num_servers_;
  GreedyByLoad greedy_;
  RoundRobin round_robin_;
};

absl::Status CheckNoneGrows(StrategyKind kind,
                            const std::vector<VariableSpec>& variables) {
  for (const VariableSpec& variable : variables) {
    if (!variable.grows()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "strategy.kind is ", StrategyKindName(kind), ", but \"", variable.name,
        "\" is a table that grows, which needs servers; give it a fixed number "
        "of rows, or set strategy.kind to PARAMETER_SERVER"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckModelSize(const std::vector<VariableSpec>& variables,
                            int64_t max_part_bytes,
                            const PartitionerConfig& partitioner) {
  if (variables.size() > static_cast<size_t>(kMaxVariables)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has ", variables.size(), " variables; join some, at most ",
        kMaxVariables, " are possible"));
  }
  std::set<std::string> names;
  int64_t room = kMaxElements;
  int64_t parts = 0;
  for (const VariableSpec& variable : variables) {
    LOCKSTEP_RETURN_IF_ERROR(CheckVariable(variable, names, room));
    // A limit below one element is MakePlan()'s error, not a division by 0
    // here.
    const int64_t limit = std::max<int64_t>(
        max_part_bytes / static_cast<int64_t>(ElementSize(variable.dtype)), 1);
    const bool by_bytes =
        partitioner.kind == PartitionerConfig::Kind::kMaxPartBytes &&
        !variable.is_table();
    // At least one part each by other rules; MakePlan() checks their exact
    // number.
    parts += by_bytes ? (NumElements(variable.shape) - 1) / limit + 1 : 1;
    LOCKSTEP_RETURN_IF_ERROR(CheckNumParts(parts, variable, max_part_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> MakePlan(const std::vector<VariableSpec>& variables,
                              int num_servers, int64_t max_part_bytes,
                              const PlacementConfig& placement,
                              const PartitionerConfig& partitioner) {
  if (variables.empty()) {
    return absl::InvalidArgumentError("the model has no variables");
  }
  if (num_servers < 1) {
    return absl::InvalidArgumentError("the cluster has no ps task");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckModelSize(variables, max_part_bytes, partitioner));
  Plan plan{variables, {}};
  ServerChooser chooser(placement, num_servers);
  // The index of a part counts the parts of its server.
  std::vector<int> next_index(num_servers, 0);
  for (size_t v = 0; v < variables.size(); ++v) {
    const VariableSpec& variable = variables[v];
    const auto before = static_cast<int64_t>(plan.parts.size());
    LOCKSTEP_ASSIGN_OR_RETURN(
        const Slices slices,
        Cut(variable, num_servers, max_part_bytes, partitioner, before));
    for (size_t i = 0; i < slices.size(); ++i) {
      const int64_t bytes =
          slices[i].count * static_cast<int64_t>(ElementSize(variable.dtype));
      LOCKSTEP_ASSIGN_OR_RETURN(
          int server,
          chooser.Next(
              slices.size() == 1 ? variable.name : PartName(variable.name, i),
              bytes));
      plan.parts.push_back({static_cast<int>(v), slices[i].offset,
                            slices[i].count, server, next_index[server]++,
                            slices[i].row_stride});
    }
  }
  return plan;
}

absl::StatusOr<Plan> MirrorPlan(Plan plan, int num_servers) {
  // Mirrors would have to agree on the order in which rows are created.
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNoneGrows(StrategyKind::kMultiWorkerMirrored, plan.variables));
  // A mirror has the parts of all servers, so an index counts through the parts
  // of server 0, then those of server 1, and so on.
  std::vector<int> first(num_servers + 1, 0);
  for (const Part& part : plan.parts) ++first[part.server + 1];
  for (int server = 0; server < num_servers; ++server) {
    first[server + 1] += first[server];
  }
  for (Part& part : plan.parts) part.index += first[part.server];
  plan.mirrored = true;
  return plan;
}

absl::StatusOr<Plan> PlanOfJob(const JobConfig& job,
                               const std::vector<VariableSpec>& variables,
                               int num_servers) {
  LOCKSTEP_ASSIGN_OR_RETURN(Plan plan,
                            MakePlan(variables, num_servers, job.max_part_bytes,
                                     job.placement, job.partitioner));
  if (job.strategy.kind == StrategyKind::kMultiWorkerMirrored) {
    return MirrorPlan(std::move(plan), num_servers);
  }
  if (job.strategy.kind != StrategyKind::kParameterServer) {
    // As CheckStrategy() for the models of the `worker` program.
    LOCKSTEP_RETURN_IF_ERROR(CheckNoneGrows(job.strategy.kind, variables));
  }
  if (!PartsOf(plan, 0).empty()) return plan;
  return absl::InvalidArgumentError(
      absl::StrCat("placement.seed is ", job.placement.seed,
                   ", with which ps 0 gets no part of the variables; choose "
                   "another seed, another placement.strategy or fewer ps"));
}

absl::Status CheckGradientType(const std::vector<VariableSpec>& variables,
                               GradientType gradient_wire_type) {
  for (const VariableSpec& variable : variables) {
    const absl::Status status =
        GradientElementSize(variable.dtype, gradient_wire_type).status();
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("gradient_wire_type, variable \"", variable.name,
                     "\": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
