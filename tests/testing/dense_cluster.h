#ifndef LOCKSTEP_TESTS_TESTING_DENSE_CLUSTER_H_
#define LOCKSTEP_TESTS_TESTING_DENSE_CLUSTER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/cluster/cluster_spec.h"

namespace lockstep::testing {

// Makes dense jobs: element i of a list is the address of task i.
inline ClusterSpec DenseCluster(
    const std::map<std::string, std::vector<std::string>>& lists) {
  ClusterSpec::Jobs jobs;
  for (const auto& [job, addresses] : lists) {
    ClusterSpec::Tasks& tasks = jobs[job];
    for (const std::string& address : addresses) {
      tasks.emplace(static_cast<int>(tasks.size()), address);
    }
  }
  return ClusterSpec::FromJobs(std::move(jobs)).value();
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_DENSE_CLUSTER_H_
