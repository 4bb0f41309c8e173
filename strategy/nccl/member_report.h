#ifndef LOCKSTEP_STRATEGY_NCCL_MEMBER_REPORT_H_
#define LOCKSTEP_STRATEGY_NCCL_MEMBER_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/value.h"

namespace lockstep::strategy {

// The report that each member of a group sends to all others before they use
// NCCL.
struct MemberReport {
  std::string host;
  // Why the member cannot use NCCL, with the fix; empty if it can.
  std::string problem;
  // The device that the program has chosen; -1: the member's rank among the
  // members of its host.
  int gpu = -1;
  int nccl = 0;                   // version, e.g. 22809
  std::vector<std::string> gpus;  // PCI bus ids, by device
};

// Text as a leaf of kUint8, and back. A leaf of another kind is the empty text.
Value TextLeaf(const std::string& text);
std::string TextOf(const Leaf& leaf);

Value ReportLeaf(const MemberReport& report);

//   kInvalidArgument  the leaf is no report
absl::StatusOr<MemberReport> ReportOf(const Leaf& leaf);

// Returns the device of each member, by rank. All members get the same result,
// since all have the same reports.
//
//   kFailedPrecondition  a member cannot use NCCL, has no such GPU or another
//                        version; names it, the reason and the fix
//   kInvalidArgument     two members have the same GPU; names both and the fix
absl::StatusOr<std::vector<int>> AssignGpus(
    const std::vector<MemberReport>& by_rank);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_NCCL_MEMBER_REPORT_H_
