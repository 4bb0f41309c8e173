#ifndef LOCKSTEP_TESTS_INTEGRATION_WORKER_SESSION_OTHER_WORKER_H_
#define LOCKSTEP_TESTS_INTEGRATION_WORKER_SESSION_OTHER_WORKER_H_

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/cluster/cluster.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/session/handover.h"
#include "worker/session/program_workload.h"
#include "worker/session/session.h"
#include "worker/session/session_variables.h"
#include "worker/session/training_member.h"

namespace lockstep::worker {

// OtherWorker is the worker that is not the session's, in the same process,
// which can have one session. Its gradients are zeros.
class OtherWorker {
 public:
  OtherWorker(const Cluster& cluster,
              const std::vector<SessionVariable>& variables)
      : workload_(SpecsOf(variables), InitialOf(variables)),
        member_(TrainingMember::Make(cluster, {}, workload_, Clock::Real())) {
    EXPECT_OK(member_);
    if (!member_.ok()) return;
    loop_ =
        std::thread([this] { workload_.handover().End((*member_)->Run()); });
    program_ = std::thread([this] { Compute(); });
  }
  ~OtherWorker() {
    if (!member_.ok()) return;
    (*member_)->RequestStop("the test is over");
    Wait().IgnoreError();
  }

  // Waits for the end of its part, and returns it.
  absl::Status Wait() {
    if (loop_.joinable()) loop_.join();
    if (program_.joinable()) program_.join();
    return workload_.handover().end();
  }

 private:
  void Compute() {
    Handover& handover = workload_.handover();
    while (true) {
      Handover::Offer offer;
      const Handover::Stage stage = handover.Take(absl::Seconds(1), offer);
      if (stage == Handover::Stage::kEnded) return;
      if (stage != Handover::Stage::kPass) continue;
      for (size_t v = workload_.variables().size(); v > 0; --v) {
        handover.Ready(v - 1).IgnoreError();
      }
      handover.Done({.loss = 0, .examples = 8}).IgnoreError();
    }
  }

  ProgramWorkload workload_;
  absl::StatusOr<std::unique_ptr<TrainingMember>> member_;
  std::thread loop_;
  std::thread program_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_INTEGRATION_WORKER_SESSION_OTHER_WORKER_H_
