#ifndef LOCKSTEP_SERVER_CALLS_LONG_CALLS_H_
#define LOCKSTEP_SERVER_CALLS_LONG_CALLS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace lockstep::server {

// LongCalls does long work, such as filling or copying all of a server's
// memory, one piece after the other in a thread of its own, so that gRPC's
// threads can serve other calls meanwhile.
//
// A caller that can repeat its call is answered early, with the progress of the
// work. The repeated request finds the work under way, or the error with which
// it has failed. After a success, the work must be quick to repeat and must
// give the same result.
//
// Threads: safe to share.
// Borrows: the clock.
class LongCalls {
 public:
  using Result = absl::StatusOr<std::string>;  // a response, serialized
  using Work = std::function<Result()>;

  // A waiting call. The thread that removes it must call one of these, once.
  struct Call {
    std::function<void(const Result&)> end;
    // Ends the call with the progress of the work; null: the call waits for the
    // end.
    std::function<void()> end_not_yet = nullptr;
    absl::Time since = absl::InfinitePast();
  };

  explicit LongCalls(const Clock& clock);
  ~LongCalls();  // as Join()
  LongCalls(const LongCalls&) = delete;
  LongCalls& operator=(const LongCalls&) = delete;

  // Does `work` and answers the call with its result. If the same request is
  // being served already, the call waits for the end of that work, and the call
  // that waited before is ended with kAborted.
  void Serve(const std::string& request, Call call, Work work)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `work`, which must end its own call: after the work if its argument
  // is kOk; otherwise at once, with that error.
  void Run(std::function<void(const absl::Status&)> work)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Answers the calls that have waited since before `time` and can be repeated.
  void AnswerOld(absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all calls, and later ones; work that has not begun is not done.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all calls, if End() has not, and waits for the work under way, which
  // goes on when its call has ended. Must be called before what the work uses
  // is destroyed, by one thread at a time.
  void Join() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::string request;  // empty: of Run()
    Work work;
    std::function<void(const absl::Status&)> run;
    std::optional<Call> call;  // the waiting call, if any
    // The error of the work and its time, if no call has been answered with it.
    absl::Status failure;
    absl::Time failed;
  };

  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Do(const std::shared_ptr<Entry>& entry) ABSL_LOCKS_EXCLUDED(mutex_);

  const Clock& clock_;

  Mutex mutex_;
  CondVar wake_;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // OK: it serves
  std::deque<std::shared_ptr<Entry>> waiting_ ABSL_GUARDED_BY(mutex_);
  // The calls of Serve(): waiting, under way, or with a failure to report.
  std::deque<std::shared_ptr<Entry>> served_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_CALLS_LONG_CALLS_H_
