#ifndef LOCKSTEP_SERVER_MIRROR_MIRROR_SERVICE_H_
#define LOCKSTEP_SERVER_MIRROR_MIRROR_SERVICE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "lockstep/v1/mirror.grpc.pb.h"
#include "server/calls/respond.h"
#include "server/shard/mean_waits.h"
#include "server/shard/shard_host.h"

namespace lockstep::server {

// MirrorService lends the mean gradients that this server computes to the other
// mirrors of the job. A call waits, without a thread, until they are computed.
//
// Threads: safe to share; gRPC calls it from its own threads, and no call
//          blocks.
// Borrows: all constructor arguments, which must outlive the gRPC server.
class MirrorService final
    : public v1::MirrorService::WithRawCallbackMethod_FetchMeans<
          v1::MirrorService::Service> {
 public:
  MirrorService(ShardHost& host, const Clock& clock)
      : host_(host), clock_(clock) {}

  grpc::ServerUnaryReactor* FetchMeans(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;

  // Answers the calls whose means are computed, or whose attempt is over, and
  // ends those of a shard that was discarded. Must be called when
  // ShardAnswers::means_changed is set or a shard was discarded, with no lock
  // held.
  void AnswerReady() ABSL_LOCKS_EXCLUDED(mutex_);

  // Answers calls before they reach their deadlines, with kDeadlineExceeded,
  // and those whose step is over. Must be called periodically.
  void AnswerOld(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all calls, and later ones: the process ends.
  void EndAll(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A call, and how it is answered.
  struct Call {
    Respond respond;
    bool shared = false;  // the caller may read means in place
  };
  struct Reply {
    Call call;
    MeanWaits::Answer answer;
  };

  // Returns the wait of the call, without a ticket, and whether the caller may
  // read means in place.
  absl::StatusOr<MeanWaits::Wait> Admit(const Caller& caller,
                                        const grpc::ByteBuffer& request,
                                        bool& shared) const;
  void File(MeanWaits::Wait wait, Call call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Joins answers with their calls, which are removed.
  std::vector<Reply> RepliesOf(std::vector<MeanWaits::Answer> answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Must be called with no lock held.
  static void Send(std::vector<Reply> replies);

  ShardHost& host_;
  const Clock& clock_;
  Mutex mutex_;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);  // OK: it serves
  uint64_t tickets_ ABSL_GUARDED_BY(mutex_) = 0;
  MeanWaits waits_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Call> calls_ ABSL_GUARDED_BY(mutex_);  // by ticket
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_MIRROR_MIRROR_SERVICE_H_
