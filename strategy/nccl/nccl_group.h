#ifndef LOCKSTEP_STRATEGY_NCCL_NCCL_GROUP_H_
#define LOCKSTEP_STRATEGY_NCCL_NCCL_GROUP_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/collective/collective.h"
#include "strategy/nccl/nccl_communicator.h"
#include "strategy/nccl/nccl_library.h"
#include "strategy/nccl/payload.h"

namespace lockstep::strategy {

// NcclGroup is a member of a group whose GPUs exchange large dense leaves by
// NCCL. All else travels by another group, the wrapped one: small leaves,
// slices, headers, and descriptions, which must be compared before NCCL is
// called. The results are those of the wrapped group, byte by byte.
//
// An error of NCCL or CUDA ends the group: this member leaves the wrapped
// group, so the calls of the others fail too.
//
// Threads: as Collective.
class NcclGroup final : public Collective {
 public:
  struct Options {
    // If a member cannot use NCCL: true: Make() fails; false: it returns the
    // wrapped group.
    bool required = false;
    // Device of this member; -1: its rank among the members of its host.
    int gpu = -1;
    absl::Duration timeout = absl::Minutes(5);  // of NCCL in an exchange
    absl::Duration grace = absl::Seconds(2);    // as NcclCommunicator::Options
    // Leaves with fewer bytes travel by the wrapped group.
    size_t small_bytes = size_t{32} << 10;
    size_t round_bytes = size_t{64} << 20;  // as NcclCommunicator::Options
    std::string host{};                     // empty: the name of this host
    LibraryNames libraries{};
  };

  // Decides with all members of `group` whether they use NCCL. All must call it
  // before any other call of the group, with the same `required`. Returns an
  // NcclGroup, or `group` itself if it has one member, or if NCCL cannot be
  // used and is not required.
  //
  //   kFailedPrecondition  NCCL is required, and a member cannot use it; names
  //                        the member, the reason and the fix
  //   kInvalidArgument     NCCL is required, and two members have the same GPU
  //   others               as Collective::Exchange()
  static absl::StatusOr<std::unique_ptr<Collective>> Make(
      std::unique_ptr<Collective> group, const Options& options);

  ~NcclGroup() override = default;

  int rank() const override { return rank_; }
  int members() const override { return members_; }

  // Errors: also
  //
  //   kAborted             a member has left
  //   kInvalidArgument     as CheckLeaf(), at all members
  //   kInternal            a call of NCCL or CUDA has failed at this member
  //   kResourceExhausted   the GPU has too little memory
  absl::StatusOr<std::vector<Parcel>> Exchange(const std::string& description,
                                               std::vector<Leaf> mine) override;

  absl::Status Ended() const override;
  // Applies to calls of NCCL as well.
  void SetTimeout(std::optional<absl::Duration> timeout) override;

 private:
  NcclGroup(std::unique_ptr<Collective> group,
            std::unique_ptr<NcclCommunicator> communicator, size_t small_bytes);

  // Gathers the payloads by NCCL. `rests` are the parcels of all members,
  // without their payloads.
  absl::StatusOr<std::vector<Parcel>> Complete(
      std::vector<Leaf> mine, const std::vector<Parcel>& rests);
  // Leaves the wrapped group and makes all later calls fail. Returns `why` with
  // the description of the exchange.
  absl::Status End(const std::string& description, const absl::Status& why);

  const int rank_;
  const int members_;
  const size_t small_bytes_;
  std::unique_ptr<Collective> group_;  // null once the group has ended
  // Calls group_->Ended(), so it must be destroyed before the group.
  std::unique_ptr<NcclCommunicator> communicator_;
  absl::Status ended_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_NCCL_NCCL_GROUP_H_
