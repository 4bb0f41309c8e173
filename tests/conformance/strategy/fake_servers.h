#ifndef LOCKSTEP_TESTS_CONFORMANCE_STRATEGY_FAKE_SERVERS_H_
#define LOCKSTEP_TESTS_CONFORMANCE_STRATEGY_FAKE_SERVERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/mutex.h"
#include "strategy/servers/training_job.h"

namespace lockstep::strategy {

// FakeServers holds the variables of a job, which are float32 scalars, and
// trains them by gradient descent: a step is complete when each worker has
// pushed its gradients, and uses their mean.
//
// Threads: safe to share.
class FakeServers {
 public:
  FakeServers(int workers, float learning_rate, std::vector<float> initial)
      : workers_(workers),
        learning_rate_(learning_rate),
        values_(initial),
        sums_(initial.size(), 0) {}

  // The job as a worker sees it; the servers must outlive it.
  std::unique_ptr<TrainingJob> Join(int worker);

 private:
  class Job;

  // Waits until `step` steps are complete, and returns the values then.
  std::vector<float> ValuesAt(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  void Push(absl::Span<const std::optional<Value>> gradients)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const int workers_;
  const float learning_rate_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<float> values_ ABSL_GUARDED_BY(mutex_);
  std::vector<float> sums_ ABSL_GUARDED_BY(mutex_);  // of gradients
  int pushed_ ABSL_GUARDED_BY(mutex_) = 0;           // in this step
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_TESTS_CONFORMANCE_STRATEGY_FAKE_SERVERS_H_
