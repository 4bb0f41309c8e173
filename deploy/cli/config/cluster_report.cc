#include "deploy/cli/config/cluster_report.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/flags/wrap_text.h"
#include "common/text/count_text.h"
#include "deploy/cli/tasks/launch_plan.h"
#include "deploy/cli/text/text_format.h"
#include "deploy/cli/text/text_table.h"

namespace lockstep::cli {
namespace {

using Reachable = std::map<TaskId, std::string>;

constexpr char kMirrors[] =
    "no ps: chief and workers compute, each with a copy of the variables";

constexpr TaskType kTypes[] = {TaskType::kChief, TaskType::kWorker,
                               TaskType::kPs, TaskType::kEvaluator};

// Returns the tasks, including this process if it is an evaluator outside the
// cluster.
std::vector<TaskId> Tasks(const Cluster& cluster, TaskType type) {
  std::vector<TaskId> tasks = cluster.Tasks(type);
  const TaskId self = cluster.self();
  if (type == TaskType::kEvaluator && self.type == type && tasks.empty()) {
    tasks.push_back(self);
  }
  return tasks;
}

std::string Headline(const Cluster& cluster) {
  if (cluster.IsLocal()) {
    return absl::StrCat(Printable(cluster.source()),
                        ": no cluster, a single local task");
  }
  return absl::StrCat(Printable(cluster.source()), ": as ",
                      cluster.self().ToString(), " sees it");
}

std::string ChiefLine(const Cluster& cluster) {
  const TaskId chief = cluster.chief();
  const auto address = cluster.Address(chief);
  std::string line = absl::StrCat("chief: ", chief.ToString());
  if (cluster.WorkerHostsChief()) {
    absl::StrAppend(&line, ", as there is no chief task");
  }
  if (address.ok()) absl::StrAppend(&line, ", at ", Printable(*address));
  return line;
}

std::string CountsLine(const Cluster& cluster) {
  std::string line = "counts:";
  const char* separator = " ";
  for (const TaskType type : kTypes) {
    const auto count = static_cast<int64_t>(Tasks(cluster, type).size());
    // "ps" is its own plural.
    absl::StrAppend(&line, separator,
                    type == TaskType::kPs
                        ? absl::StrCat(count, " ", TaskTypeName(type))
                        : CountText(count, TaskTypeName(type)));
    separator = ", ";
  }
  return line;
}

// Without a ps each task that computes is a worker with a mirror.
std::string ProgramOf(const Cluster& cluster, TaskId task) {
  const bool mirrors =
      cluster.HasMirrors() && task.type != TaskType::kEvaluator;
  return ProgramCommand(mirrors ? TaskType::kWorker : task.type);
}

std::vector<std::string> Row(const Cluster& cluster, TaskId task,
                             const Reachable& reachable) {
  const auto id = cluster.IdInCluster(task);
  std::vector<std::string> row = {
      task.ToString(), id.ok() ? absl::StrCat(*id) : "-",
      cluster.Address(task).value_or("-"), ProgramOf(cluster, task)};
  if (!reachable.empty()) {
    const auto found = reachable.find(task);
    row.push_back(found == reachable.end() ? "" : found->second);
  }
  row.push_back(task == cluster.self() ? "this one" : "");
  return row;
}

std::string Table(const Cluster& cluster, const Reachable& reachable,
                  size_t width) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns = {
      {.title = "task"},
      {.title = "id", .align = Align::kRight},
      {.title = "address", .shrinks = true},
      {.title = "program"}};
  if (!reachable.empty()) columns.push_back({.title = "connects"});
  columns.push_back({});
  TextTable table(columns);
  size_t rows = 0;
  for (const TaskType type : kTypes) {
    for (const TaskId& task : Tasks(cluster, type)) {
      table.AddRow(Row(cluster, task, reachable));
      ++rows;
    }
  }
  // A table of titles alone says nothing.
  return rows == 0 ? "" : table.Format(width);
}

void Append(const char* label, const std::vector<std::string>& sentences,
            size_t width, std::string& text) {
  for (const std::string& sentence : sentences) {
    absl::StrAppend(
        &text,
        WrapText(absl::StrCat(label, ": ", Printable(sentence)), width, 2),
        "\n");
  }
}

}  // namespace

std::vector<std::string> FindMistakes(const Cluster& cluster) {
  std::vector<std::string> mistakes;
  const auto add = [&mistakes](const absl::Status& status) {
    if (!status.ok()) mistakes.emplace_back(status.message());
  };
  // An evaluator is not part of the training, so that the check for servers
  // refuses its view.
  if (cluster.IsLocal() || cluster.self().type != TaskType::kEvaluator) {
    add(cluster.HasMirrors() ? cluster.ValidateForAllReduce()
                             : cluster.ValidateForParameterServers());
  }
  if (cluster.IsLocal()) return mistakes;
  add(cluster.Address(cluster.chief()).status());
  return mistakes;
}

std::string FormatClusterReport(const Cluster& cluster,
                                const Reachable& reachable,
                                const std::vector<std::string>& mistakes,
                                size_t width) {
  std::string text = absl::StrCat(Clip(Headline(cluster), width), "\n");
  if (!cluster.IsLocal()) {
    absl::StrAppend(&text, Clip(ChiefLine(cluster), width), "\n",
                    Clip(CountsLine(cluster), width), "\n");
    if (cluster.HasMirrors()) {
      absl::StrAppend(&text, Clip(kMirrors, width), "\n");
    }
    absl::StrAppend(&text, Table(cluster, reachable, width));
  }
  Append("warning", cluster.warnings(), width, text);
  Append("mistake", mistakes, width, text);
  return absl::StrCat(text, mistakes.empty() ? "no mistakes\n" : "");
}

}  // namespace lockstep::cli
