#include "strategy/nccl/member_report.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {
namespace {

constexpr char kDirect[] =
    "use communication DIRECT (WorkersOptions::implementation kDirect)";

std::string NameOf(const std::vector<MemberReport>& by_rank, size_t rank) {
  return absl::StrCat("rank ", rank, " (host ", by_rank[rank].host, ")");
}

absl::Status CheckProblems(const std::vector<MemberReport>& by_rank) {
  for (size_t r = 0; r < by_rank.size(); ++r) {
    if (by_rank[r].problem.empty()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("NCCL cannot be used, because of ", NameOf(by_rank, r),
                     ": ", by_rank[r].problem, "; or ", kDirect));
  }
  for (size_t r = 1; r < by_rank.size(); ++r) {
    if (by_rank[r].nccl == by_rank[0].nccl) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "NCCL cannot be used: ", NameOf(by_rank, 0), " has version ",
        by_rank[0].nccl, ", ", NameOf(by_rank, r), " has ", by_rank[r].nccl,
        "; install the same version on all hosts, or ", kDirect));
  }
  return absl::OkStatus();
}

// `place` is the member's rank among those of its host.
absl::StatusOr<int> DeviceOf(const std::vector<MemberReport>& by_rank,
                             size_t rank, int place) {
  const MemberReport& report = by_rank[rank];
  const auto present = static_cast<int>(report.gpus.size());
  const int device = report.gpu == -1 ? place : report.gpu;
  if (device >= 0 && device < present) return device;
  return absl::FailedPreconditionError(absl::StrCat(
      "NCCL cannot be used, because ", NameOf(by_rank, rank), " has no GPU ",
      device, ": the host has ", present, " GPUs, and ",
      report.gpu == -1
          ? absl::StrCat("the member is number ", place,
                         " of those on it, counted from 0; start at most one "
                         "member for each GPU, or ")
          : absl::StrCat("WorkersOptions::gpu is ", report.gpu,
                         "; it must be -1, or at least 0 and below the number "
                         "of GPUs, or "),
      kDirect));
}

}  // namespace

Value TextLeaf(const std::string& text) {
  return Value::Of(ElementType::kUint8, {static_cast<int64_t>(text.size())},
                   std::vector<uint8_t>(text.begin(), text.end()));
}

std::string TextOf(const Leaf& leaf) {
  const Value* value = std::get_if<Value>(&leaf);
  if (value == nullptr || value->type() != ElementType::kUint8) return "";
  std::string text;
  for (const uint8_t each : value->Elements<uint8_t>()) {
    text.push_back(static_cast<char>(each));
  }
  return text;
}

Value ReportLeaf(const MemberReport& report) {
  const auto line = [](const std::string& text) {
    // Line breaks separate the fields.
    return absl::StrReplaceAll(text, {{"\n", " "}});
  };
  return TextLeaf(absl::StrCat(line(report.host), "\n", line(report.problem),
                               "\n", report.gpu, "\n", report.nccl, "\n",
                               absl::StrJoin(report.gpus, "\n")));
}

absl::StatusOr<MemberReport> ReportOf(const Leaf& leaf) {
  const std::vector<std::string> lines = absl::StrSplit(TextOf(leaf), '\n');
  MemberReport report;
  // Without GPUs the fifth line is there, and empty.
  if (lines.size() < 5 || !absl::SimpleAtoi(lines[2], &report.gpu) ||
      !absl::SimpleAtoi(lines[3], &report.nccl)) {
    return absl::InvalidArgumentError(
        "a member's report on NCCL cannot be read; all members must run the "
        "same build");
  }
  report.host = lines[0];
  report.problem = lines[1];
  if (!lines[4].empty()) report.gpus.assign(lines.begin() + 4, lines.end());
  return report;
}

absl::StatusOr<std::vector<int>> AssignGpus(
    const std::vector<MemberReport>& by_rank) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProblems(by_rank));
  std::vector<int> devices;
  std::map<std::string, int> of_host;
  std::map<std::pair<std::string, std::string>, size_t> owner;
  for (size_t r = 0; r < by_rank.size(); ++r) {
    const MemberReport& report = by_rank[r];
    LOCKSTEP_ASSIGN_OR_RETURN(const int device,
                              DeviceOf(by_rank, r, of_host[report.host]++));
    // The PCI bus id: device numbers mean other GPUs in a process with another
    // CUDA_VISIBLE_DEVICES.
    const std::string& id = report.gpus[static_cast<size_t>(device)];
    const auto [found, is_new] = owner.try_emplace({report.host, id}, r);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", found->second, " and rank ", r, " have the same GPU, ", id,
          " of host ", report.host,
          ", and NCCL needs one for each member; set WorkersOptions::gpu to "
          "different GPUs, or ",
          kDirect));
    }
    devices.push_back(device);
  }
  return devices;
}

}  // namespace lockstep::strategy
