#ifndef LOCKSTEP_CHIEF_PAGE_PAGE_H_
#define LOCKSTEP_CHIEF_PAGE_PAGE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/page/job_record.h"
#include "chief/page/worker_paces.h"
#include "common/status/job_status.h"

namespace lockstep::chief {

// All that the page of a job shows.
struct PageContents {
  absl::Time now;
  JobStatus status;
  double steps_per_second = 0;
  JobRecord record;
  std::map<int, WorkerPace> paces;
  absl::Duration heartbeat_interval = absl::Milliseconds(500);
};

// The most lines for workers; one further line has the sum of the rest.
inline constexpr size_t kMostRows = 40;

// Returns the page of a job, one HTML document that is complete without
// scripts; its script requests it again and replaces the parts that have
// changed.
std::string RenderPage(const PageContents& contents);

// Returns the StatusPage::policy under which the page's own script and style
// work.
std::string PagePolicy();

// Returns the time until the last step at the present speed; nullopt if the job
// does not train or makes no steps.
std::optional<absl::Duration> TimeLeft(const JobStatus& status,
                                       double steps_per_second);

// Returns sentences about the troubles of the job, the worst one first.
std::vector<std::string> Troubles(const PageContents& contents);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_PAGE_H_
