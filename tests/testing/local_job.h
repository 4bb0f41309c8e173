#ifndef LOCKSTEP_TESTS_TESTING_LOCAL_JOB_H_
#define LOCKSTEP_TESTS_TESTING_LOCAL_JOB_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/cluster.h"
#include "common/job/job_config.h"
#include "deploy/cli/run/port_reservation.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {

// LocalJob is what the roles of one job need when they all run in the process
// of a test: reserved ports, a cluster for each task, a job that trains softmax
// on small pictures within a second, and a folder that goes with this object.
class LocalJob {
 public:
  struct Options {
    int servers = 1;
    int workers = 1;
    bool chief = true;  // false: worker 0 hosts it
    bool evaluator = false;
  };

  explicit LocalJob(const Options& options);
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;

  // 20 steps of 8 examples, with a checkpoint at the end. A test may change it
  // before it starts the roles.
  JobConfig& job() { return job_; }

  // The cluster as the task TYPE INDEX sees it. The test fails if there is
  // none.
  Cluster ClusterOf(const std::string& type, int index) const;

  // TF_CONFIG of that task.
  std::string TfConfigOf(const std::string& type, int index) const;

  // HOST:PORT of a task.
  std::string Address(const std::string& type, int index) const;

  // A folder for the state of servers, which only this user may enter.
  std::string state_directory() const;
  std::string checkpoints() const { return job_.checkpoint.directory; }
  const TempDir& directory() const { return directory_; }

 private:
  void Add(const std::string& type, int tasks);

  TempDir directory_;
  std::vector<cli::PortReservation> ports_;
  std::vector<std::pair<std::string, std::vector<std::string>>> addresses_;
  JobConfig job_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_LOCAL_JOB_H_
