#ifndef LOCKSTEP_WORKER_REPLICAS_REPLICA_CREW_H_
#define LOCKSTEP_WORKER_REPLICAS_REPLICA_CREW_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace lockstep::worker {

// ReplicaCrew runs the same work for several replicas at once, each in a thread
// of its own. Functions that must run in the caller's thread are passed to it
// with Ask() and Tell().
//
// Threads: Run() from one thread at a time; Ask() and Tell() from the work.
// Owns:    the threads, which end with this object.
class ReplicaCrew {
 public:
  explicit ReplicaCrew(size_t replicas);
  ~ReplicaCrew();
  ReplicaCrew(const ReplicaCrew&) = delete;
  ReplicaCrew& operator=(const ReplicaCrew&) = delete;

  size_t size() const { return threads_.size(); }

  // Calls work(r) for each replica r and returns when all have ended;
  // kResourceExhausted, without a call, if the system has too few threads for
  // the replicas. Must not be called from `work`. Among several errors it
  // returns the first that is not kAborted, in the order of the replicas:
  // kAborted is only the consequence of another replica's failure.
  absl::Status Run(absl::FunctionRef<absl::Status(size_t replica)> work)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `function` in the thread of Run() and returns its answer. Must be
  // called from the work. All functions of Ask() and Tell() run one after the
  // other, and those of one replica in their order.
  //
  //   kAborted  another replica has failed; the function was not called
  absl::Status Ask(std::function<absl::Status()> function)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As Ask(), without waiting. Run() returns after the calls, but makes none
  // after a replica has failed.
  void Tell(std::function<void()> function) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Request {
    std::function<absl::Status()> function;
    std::optional<absl::Status>* answer;  // null: no replica waits for it
  };
  using Work = absl::FunctionRef<absl::Status(size_t replica)>;

  void Serve(size_t replica) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls the function of the next request; releases the mutex meanwhile.
  void Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Worst() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar changed_;   // for Run(): a request, or a replica has ended
  CondVar answered_;  // for replicas: an answer, work, or the end
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<const Work*> work_ ABSL_GUARDED_BY(mutex_);  // null: none to do
  std::vector<absl::Status> ends_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Request> requests_ ABSL_GUARDED_BY(mutex_);
  absl::Status started_;  // the error of a thread that could not be made
  std::vector<std::thread> threads_;  // last: they use everything above
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_REPLICAS_REPLICA_CREW_H_
