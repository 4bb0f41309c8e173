#ifndef LOCKSTEP_STRATEGY_NCCL_MEMBER_REPORT_H_
#define LOCKSTEP_STRATEGY_NCCL_MEMBER_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/value.h"

namespace lockstep::strategy {

// What a member of a group tells the others before they use NCCL.
struct MemberReport {
  std::string host;
  // Why the member has no use of NCCL, with the fix; empty: it has.
  std::string problem;
  int gpu = -1;  // device that was asked for; -1: by rank among the host's
  int nccl = 0;  // version, e.g. 22809
  std::vector<std::string> gpus;  // PCI bus ids, by device
};

// Text as a leaf, and back. Leaves have no element type of bytes, so each
// character is an int32.
Value TextLeaf(const std::string& text);
std::string TextOf(const Leaf& leaf);

Value ReportLeaf(const MemberReport& report);

//   kInvalidArgument  the leaf is no report
absl::StatusOr<MemberReport> ReportOf(const Leaf& leaf);

// The device of each member, by rank: all members compute the same from the
// reports of all.
//
//   kFailedPrecondition  a member has no use of NCCL, or no such GPU, or
//   another
//                        version; names it, the reason and the fix
//   kInvalidArgument     two members have the same GPU; names both and the fix
absl::StatusOr<std::vector<int>> AssignGpus(
    const std::vector<MemberReport>& by_rank);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_NCCL_MEMBER_REPORT_H_
