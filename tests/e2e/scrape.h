#ifndef LOCKSTEP_TESTS_E2E_SCRAPE_H_
#define LOCKSTEP_TESTS_E2E_SCRAPE_H_

#include <string>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/raw_socket.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {

// Returns what one task, which has --status_address=127.0.0.1:0, answers to a
// GET of `path`.
inline std::string Get(TrainingJob& job, const std::string& task, int index,
                       const std::string& path) {
  constexpr char kAnnounced[] = "status on port ";
  EXPECT_OK(job.cluster().WaitForLog(task, index, kAnnounced, kPatience));
  const std::string log = job.cluster().ReadLog(task, index).value_or("");
  int port = 0;
  const size_t at = log.find(kAnnounced) + sizeof(kAnnounced) - 1;
  EXPECT_TRUE(absl::SimpleAtoi(log.substr(at, log.find('\n', at) - at), &port));
  const RawSocket socket(port);
  EXPECT_TRUE(
      socket.Send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  std::string answer;
  for (std::string more = socket.Receive(); !more.empty();
       more = socket.Receive()) {
    answer += more;
  }
  EXPECT_THAT(answer, ::testing::HasSubstr("\r\n\r\n"));
  return answer;
}

// Returns the metrics of one task.
inline std::string Scrape(TrainingJob& job, const std::string& task,
                          int index) {
  const std::string answer = Get(job, task, index, "/metrics");
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_E2E_SCRAPE_H_
