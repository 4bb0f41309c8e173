#include "chief/steps/step_waits.h"

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

std::vector<StatusTable::Wait> StepWaits::List() const {
  std::vector<StatusTable::Wait> waits;
  for (size_t i = 0; i < servers.size(); ++i) {
    if (servers[i].empty()) continue;
    waits.push_back(
        {absl::StrCat("step ", step, " on ps ", i),
         workers.empty() ? servers[i] : absl::StrCat(servers[i], "; ", workers),
         since});
  }
  // All servers are prepared.
  if (waits.empty()) {
    waits.push_back(
        {absl::StrCat("step ", step, " on ps 0"), "its commit by ps 0", since});
  }
  return waits;
}

std::string StepWaits::Summary() const {
  return workers.empty() ? List().front().waits_for : workers;
}

}  // namespace lockstep::chief
