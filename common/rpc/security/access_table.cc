#include "common/rpc/security/access_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

constexpr RoleSet kChief = Bit(Role::kChief);
constexpr RoleSet kPs = Bit(Role::kPs);
constexpr RoleSet kWorker = Bit(Role::kWorker);
constexpr RoleSet kEvaluator = Bit(Role::kEvaluator);
constexpr RoleSet kSteerer = Bit(Role::kSteerer);
constexpr RoleSet kOperators = Bit(Role::kReader) | kSteerer;
constexpr RoleSet kMembers = kPs | kWorker | kEvaluator;

// Sorted by method, for the binary search. Handlers check further that members
// speak in their own name, and that only operators hold a job that they stop.
constexpr AccessRow kTable[] = {
    {"/grpc.health.v1.Health/Check", kEveryRole},
    {"/grpc.health.v1.Health/Watch", kEveryRole},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
     kOperators},
    {"/lockstep.v1.CallStreamService/Calls", kWorker},
    {"/lockstep.v1.CoordinatorService/ChangeSettings", kSteerer},
    {"/lockstep.v1.CoordinatorService/Checkpoint", kSteerer},
    // Also servers, for a chief that restarts when all workers have left.
    {"/lockstep.v1.CoordinatorService/DescribeModel", kPs | kWorker},
    {"/lockstep.v1.CoordinatorService/GetPlan", kWorker | kEvaluator},
    {"/lockstep.v1.CoordinatorService/GetStatus", kEveryRole},
    {"/lockstep.v1.CoordinatorService/Heartbeat", kMembers},
    {"/lockstep.v1.CoordinatorService/Leave", kMembers},
    {"/lockstep.v1.CoordinatorService/PutInitialValues", kWorker},
    {"/lockstep.v1.CoordinatorService/Register", kMembers},
    {"/lockstep.v1.CoordinatorService/ReportEvaluation", kEvaluator},
    {"/lockstep.v1.CoordinatorService/Stop", kPs | kSteerer},
    // Also a chief: in a cluster without ps it is the first worker.
    {"/lockstep.v1.GroupService/Give", kChief | kWorker},
    {"/lockstep.v1.GroupService/Greet", kChief | kWorker},
    {"/lockstep.v1.MirrorService/FetchMeans", kPs},
    {"/lockstep.v1.ParameterService/OpenSharedMemory", kWorker},
    {"/lockstep.v1.ParameterService/Pull", kChief | kWorker},
    {"/lockstep.v1.ParameterService/Push", kWorker},
    {"/lockstep.v1.ShardControlService/Activate", kChief},
    {"/lockstep.v1.ShardControlService/BeginSnapshot", kChief},
    {"/lockstep.v1.ShardControlService/CloseTokens", kChief},
    {"/lockstep.v1.ShardControlService/Commit", kChief},
    {"/lockstep.v1.ShardControlService/CreateShard", kChief},
    {"/lockstep.v1.ShardControlService/EndSnapshot", kChief},
    {"/lockstep.v1.ShardControlService/ExpireWorker", kChief},
    {"/lockstep.v1.ShardControlService/ReadSnapshot", kChief},
    {"/lockstep.v1.ShardControlService/ReplaceMember", kChief},
    {"/lockstep.v1.ShardControlService/TakeAndApply", kChief},
    {"/lockstep.v1.ShardControlService/TakeEpoch", kChief},
    {"/lockstep.v1.ShardControlService/WriteParts", kChief},
    {"/lockstep.v1.SyncService/Announce", kWorker},
    {"/lockstep.v1.SyncService/TakeToken", kWorker},
    {"/lockstep.v1.TraceService/BeginTrace", kOperators},
    {"/lockstep.v1.TraceService/GetTrace", kOperators},
    {"/lockstep.v1.TraceService/ReportTrace", kMembers},
};

std::string NamesOf(RoleSet roles) {
  std::vector<absl::string_view> names;
  for (int i = 0; i < kRoles; ++i) {
    const Role role = static_cast<Role>(i);
    if ((roles & Bit(role)) != 0) names.push_back(RoleName(role));
  }
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

}  // namespace

absl::Span<const AccessRow> AccessTable() { return kTable; }

RoleSet RolesThatMay(absl::string_view method) {
  const AccessRow* row = std::lower_bound(
      std::begin(kTable), std::end(kTable), method,
      [](const AccessRow& row, absl::string_view m) { return row.method < m; });
  // A method that the table lacks is allowed to no role.
  return row != std::end(kTable) && row->method == method ? row->roles : 0;
}

absl::Status CheckMayCall(const Caller& caller, absl::string_view method) {
  const RoleSet roles = RolesThatMay(method);
  if (caller.HasOneOf(roles)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(caller.ToString(), " must not call ", Excerpt(method),
                   "; the roles that may: ", NamesOf(roles)));
}

}  // namespace lockstep
