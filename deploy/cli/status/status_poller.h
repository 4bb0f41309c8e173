#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_POLLER_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_POLLER_H_

#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/status/job_status.h"
#include "deploy/cli/status/coordinator_client.h"

namespace lockstep::cli {

// StatusPoller calls GetStatus periodically in its own thread, so that a slow
// chief delays no other thread.
//
// Threads: safe to share.
class StatusPoller {
 public:
  struct Options {
    absl::Duration interval = absl::Milliseconds(200);  // between two calls
    absl::Duration timeout = absl::Seconds(1);          // of each call
  };

  // The events since the last TakeNews().
  struct News {
    std::optional<JobStatus> status;  // the newest answer
    bool stop_refused = false;        // the chief did not answer AskToStop()
  };

  StatusPoller(const std::string& address, const Options& options);

  // Blocks for at most one call.
  ~StatusPoller();
  StatusPoller(const StatusPoller&) = delete;
  StatusPoller& operator=(const StatusPoller&) = delete;

  // Readable while there is news.
  int event_fd() const { return event_fd_; }

  News TakeNews() ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends a stop request to the chief before the next GetStatus.
  void AskToStop(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Poll() ABSL_LOCKS_EXCLUDED(mutex_);
  void SendStop(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  void Notify();

  const Options options_;
  const int event_fd_;
  CoordinatorClient client_;

  Mutex mutex_;
  CondVar wake_;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::string> stop_reason_ ABSL_GUARDED_BY(mutex_);
  News news_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_POLLER_H_
