#ifndef LOCKSTEP_SERVER_MIRROR_MIRROR_SERVICE_H_
#define LOCKSTEP_SERVER_MIRROR_MIRROR_SERVICE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "lockstep/v1/mirror.grpc.pb.h"
#include "server/calls/respond.h"
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
  struct Wait {
    Respond respond;
    // The shard of the call. A shard that is created anew does not know the
    // step of the call.
    std::shared_ptr<Shard> shard;
    int64_t step = 0;
    int64_t attempt = 0;
    int first_part = 0;
    int num_parts = 0;
    bool shared = false;  // the caller may read means in place
    absl::Time since;
  };
  struct Answer {
    Respond respond;
    absl::Status status;
    grpc::ByteBuffer response = {};
    // Set if the call's shard was discarded. May be the last reference, and
    // unmapping takes long, so it must be released with no lock held.
    std::shared_ptr<Shard> shard = {};
  };

  absl::StatusOr<Wait> Admit(const Caller& caller,
                             const grpc::ByteBuffer& request) const;
  void File(Wait wait) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the answer, if it is ready, and moves `respond` into it. `current`
  // is the shard of the host, if it has one.
  std::optional<Answer> TryAnswer(Wait& wait, const Shard* current) const;
  static void Send(std::list<Answer> answers);

  ShardHost& host_;
  const Clock& clock_;
  Mutex mutex_;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);  // OK: it serves
  std::list<Wait> waits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_MIRROR_MIRROR_SERVICE_H_
