#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_TEXT_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_TEXT_H_

#include <optional>
#include <string>

#include "common/status/job_status.h"

namespace lockstep::cli {

// Appends ", 52000 words/s"; nothing if the job does not count its examples.
void AppendSpeed(const JobStatus& status, std::string& line);

// Returns "test accuracy 0.8912", with ", AUC 0.9810" if there are two classes.
std::string ScoreText(const Evaluation& evaluation);

// Returns the longest wait; nothing if there is none.
std::optional<WaitStatus> LongestWait(const JobStatus& status);

// "step 12 on ps 0 waits for 1 more gradient; worker 2 (3.4 s)".
std::string WaitText(const WaitStatus& wait);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_STATUS_TEXT_H_
