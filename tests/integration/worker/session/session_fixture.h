#ifndef LOCKSTEP_TESTS_INTEGRATION_WORKER_SESSION_SESSION_FIXTURE_H_
#define LOCKSTEP_TESTS_INTEGRATION_WORKER_SESSION_SESSION_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/status_matchers.h"
#include "worker/session/session.h"

namespace lockstep::worker {

inline absl::Span<const std::byte> BytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()),
          values.size() * sizeof(float)};
}

// One worker that pulls `w` towards 0 by a tenth a step.
class SessionFixture : public ::testing::Test {
 protected:
  explicit SessionFixture(const testing::LocalJob::Options& options = {})
      : job_(options) {
    JobConfig& job = job_.job();
    job.model = {};
    job.model.kind = "external";
    job.data = {};
    job.train_steps = 5;
    job.learning_rate.base = 0.1;
  }

  // `job_file` is for a worker that hosts the chief.
  absl::StatusOr<std::unique_ptr<Session>> Join(
      const std::string& job_file = "", bool early_passes = false) {
    const std::string path = job_.directory().Join("tf_config");
    std::ofstream(path) << job_.TfConfigOf("worker", 0);
    return Session::Join(
        {.tf_config = path, .early_passes = early_passes, .job_file = job_file},
        Variables());
  }
  std::vector<SessionVariable> Variables() const {
    return {{{.name = "w", .shape = {2}}, BytesOf(given_)},
            {{.name = "b", .shape = {1}}, {}}};
  }

  // Computes passes until the job ends, or `steps` are handed in.
  void Train(Session& session, int steps = 1 << 30) {
    SessionStep step;
    for (int made = 0; made < steps;) {
      const auto turn = session.Next(absl::Seconds(1), step);
      ASSERT_THAT(turn, testing::IsOk());
      if (*turn == Session::Turn::kEnded) return;
      if (*turn != Session::Turn::kStep) continue;
      std::memcpy(session.gradient(0).data(), session.value(0).data(), 8);
      numbers_.push_back(step.number);
      ASSERT_OK(session.Ready(0));
      ASSERT_OK(session.Finish(1.5, 8));
      ++made;
    }
  }

  testing::LocalJob job_;
  std::vector<float> given_ = {1, -2};
  std::vector<int64_t> numbers_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_INTEGRATION_WORKER_SESSION_SESSION_FIXTURE_H_
