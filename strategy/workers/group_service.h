#ifndef LOCKSTEP_STRATEGY_WORKERS_GROUP_SERVICE_H_
#define LOCKSTEP_STRATEGY_WORKERS_GROUP_SERVICE_H_

#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/collective/group_view.h"
#include "common/collective/value.h"
#include "lockstep/v1/group.grpc.pb.h"
#include "strategy/workers/parcel_codec.h"

namespace lockstep::strategy {

// GroupHandler handles the calls of the other members.
//
// Threads: safe to share.
class GroupHandler {
 public:
  virtual ~GroupHandler() = default;

  // A member joins, or if `leaves` it leaves. `receiver` is the rank for which
  // it takes this member. Errors as GroupView::Hear();
  //
  //   kInvalidArgument  also: `receiver` is not this member's rank
  virtual absl::StatusOr<GreetingAnswer> Hear(const Greeting& greeting,
                                              int receiver, bool leaves) = 0;
  // Called when the header of a parcel has arrived.
  //
  //   kAborted          the group has ended, or the parcel is of another group
  //   kDeadlineExceeded the group has ended: members did not come in time
  //   kInvalidArgument  the sender is no member, or the exchange is neither the
  //                     current nor the next one
  virtual absl::Status Admit(const v1::ParcelHeader& header) = 0;
  // Copies the payload of a parcel that was admitted, and whose header names a
  // place, into `reader`. Errors: as SharedInbox::Read().
  virtual absl::Status Read(const v1::ParcelHeader& header,
                            ParcelReader& reader) = 0;
  // Called when a parcel is complete. Has no effect if it had arrived before.
  // Errors as Admit().
  virtual absl::Status Arrive(const v1::ParcelHeader& header,
                              std::vector<Leaf> leaves) = 0;
};

// ParcelCalls are the calls that give parcels, one for each sender. A sender
// gives one parcel at a time, so a further call means that it has given up the
// one before, whose bytes must not be held for as long as it stays open.
//
// Threads: safe to share.
class ParcelCalls {
 public:
  // Cancels the call before of the same sender, if there is one.
  void Begin(int rank, grpc::CallbackServerContext* context)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Must be called before the context is destroyed.
  void End(int rank, grpc::CallbackServerContext* context)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  std::map<int, grpc::CallbackServerContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

// GroupService serves the calls of the other members of a group.
//
// Threads: gRPC calls it from its own threads; no call waits.
// Borrows: the handler, which must outlive the gRPC server.
class GroupService final : public v1::GroupService::CallbackService {
 public:
  explicit GroupService(GroupHandler& handler) : handler_(handler) {}

  grpc::ServerUnaryReactor* Greet(grpc::CallbackServerContext* context,
                                  const v1::GreetRequest* request,
                                  v1::GreetResponse* response) override;
  grpc::ServerReadReactor<v1::GiveRequest>* Give(
      grpc::CallbackServerContext* context,
      v1::GiveResponse* response) override;

 private:
  GroupHandler& handler_;
  ParcelCalls parcels_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_GROUP_SERVICE_H_
