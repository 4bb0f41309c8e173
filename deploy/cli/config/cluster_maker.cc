#include "deploy/cli/config/cluster_maker.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/cluster/host_port.h"
#include "common/cluster/task_id.h"
#include "common/text/excerpt.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {
namespace {

constexpr int kMaxTasks = 10'000;
constexpr int kMaxPort = 65'535;

absl::Status CheckRange(absl::string_view flag, int value, int least,
                        int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, " is ", value, ", but must be from ", least, " to ", most));
}

// Assigns each task its address, one host after the other.
class AddressBook {
 public:
  explicit AddressBook(const ClusterRequest& request) : request_(request) {}

  absl::Status Add(TaskType type, int count) {
    for (int index = 0; index < count; ++index) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::string address, AddressOf({type, index}));
      jobs_[std::string(TaskTypeName(type))][index] = std::move(address);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ClusterSpec> Take() {
    return ClusterSpec::FromJobs(std::move(jobs_));
  }

 private:
  absl::StatusOr<std::string> HostOf(TaskId task) const {
    if (!request_.hosts.empty()) {
      return request_.hosts[task.index % request_.hosts.size()];
    }
    const std::string host = absl::StrReplaceAll(
        request_.host_pattern, {{"{task}", TaskTypeName(task.type)},
                                {"{index}", absl::StrCat(task.index)}});
    if (absl::StrContains(host, '{') || absl::StrContains(host, '}')) {
      return absl::InvalidArgumentError(
          absl::StrCat("--host_pattern is ", Excerpt(request_.host_pattern),
                       ", but may have braces only in {task} and {index}"));
    }
    return host;
  }

  absl::StatusOr<std::string> AddressOf(TaskId task) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string host, HostOf(task));
    // Hosts are compared as they are written: two names of one machine get the
    // same ports.
    const int port = request_.port == 0 ? 0 : request_.port + used_[host]++;
    if (port > kMaxPort) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--port is ", request_.port,
          ", which leaves too few ports for the "
          "tasks of one host; lower it, or give the tasks more hosts"));
    }
    const absl::StatusOr<HostPort> address =
        ParseHostPort(absl::StrCat(host, ":", port));
    if (address.ok()) return address->ToString();
    const std::string given =
        request_.hosts.empty()
            ? absl::StrCat("--host_pattern is ", Excerpt(request_.host_pattern))
            : absl::StrCat("--hosts has ", Excerpt(host));
    return absl::InvalidArgumentError(
        absl::StrCat(given, ": ", address.status().message()));
  }

  const ClusterRequest& request_;
  ClusterSpec::Jobs jobs_;
  std::map<std::string, int> used_;  // number of ports in use, by host
};

}  // namespace

absl::StatusOr<ClusterSpec> MakeCluster(const ClusterRequest& request) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("--ps", request.ps, 0, kMaxTasks));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange("--workers", request.workers, 1, kMaxTasks));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("--port", request.port, 0, kMaxPort));
  AddressBook book(request);
  LOCKSTEP_RETURN_IF_ERROR(book.Add(TaskType::kChief, request.chief ? 1 : 0));
  LOCKSTEP_RETURN_IF_ERROR(book.Add(TaskType::kPs, request.ps));
  LOCKSTEP_RETURN_IF_ERROR(book.Add(TaskType::kWorker, request.workers));
  LOCKSTEP_RETURN_IF_ERROR(
      book.Add(TaskType::kEvaluator, request.evaluator ? 1 : 0));
  return book.Take();
}

std::string PrettyCluster(const std::string& json) {
  // nlohmann's own indentation puts each address on a line of its own.
  const nlohmann::json document = nlohmann::json::parse(json, nullptr, false);
  std::string text = "{\n  \"cluster\": {";
  const char* separator = "\n";
  for (const auto& [job, tasks] : document["cluster"].items()) {
    absl::StrAppend(&text, separator, "    \"", job, "\": ", tasks.dump());
    separator = ",\n";
  }
  absl::StrAppend(&text, "\n  }");
  if (document.contains("task")) {
    absl::StrAppend(&text, ",\n  \"task\": ", document["task"].dump());
  }
  return absl::StrCat(text, "\n}\n");
}

}  // namespace lockstep::cli
