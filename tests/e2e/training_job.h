#ifndef LOCKSTEP_TESTS_E2E_TRAINING_JOB_H_
#define LOCKSTEP_TESTS_E2E_TRAINING_JOB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/cli/status/coordinator_client.h"
#include "tests/testing/process_cluster.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {

// Time limit of a test's waits, long enough for a busy machine.
inline constexpr absl::Duration kPatience = absl::Seconds(100);

// Freed memory, in bytes, that a process of a job keeps: the quarantine of an
// address sanitizer. All programs of a build have the same sanitizers.
#if defined(__SANITIZE_ADDRESS__)
#define LOCKSTEP_E2E_QUARANTINE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOCKSTEP_E2E_QUARANTINE 1
#endif
#endif
#ifdef LOCKSTEP_E2E_QUARANTINE
inline constexpr int64_t kQuarantine = int64_t{256} << 20;
#else
inline constexpr int64_t kQuarantine = 0;
#endif

// True if LOCKSTEP_TEST_TLS is set: tests of jobs then run with certificates.
bool TlsByEnvironment();

// TrainingJob is a job on a cluster of the real programs: job file, pictures,
// logs, checkpoints and state files lie in its own directory, which the
// destructor removes. A Momentum MLP in strict mode, unless `set` changes it,
// with a lease and a stall_timeout so long that they do not end on a busy
// machine.
//
// Threads: not thread-safe.
class TrainingJob {
 public:
  struct Options {
    int servers = 2;  // 0: each task that computes hosts a mirror
    int workers = 2;
    // False: worker 0 hosts it. Where there are no servers it computes, too.
    bool chief = true;
    bool evaluator = false;
    int pictures = 2000;
    std::vector<std::string> set = {};        // "key=value" each, for --set
    std::string more_job = {};                // at the end of the job file
    std::string checkpoints = {};             // directory; empty: in its own
    std::string state_directory = {};         // of ps; empty: in its own
    std::vector<std::string> more_args = {};  // of every task but the chief
    // The program of worker tasks; empty: `worker`. Needs `chief`.
    ProcessCluster::Program worker_program = {};
    std::string compute_program = {};  // of workers, evaluator; empty: `worker`
    // True: each task has a certificate, and calls need one.
    bool tls = TlsByEnvironment();
  };

  // Writes files and chooses ports; starts no task. If that fails, the test
  // fails and ends.
  static std::unique_ptr<TrainingJob> Make(const Options& options);

  // If the test has failed, prints the last log lines of all tasks.
  ~TrainingJob();
  TrainingJob(const TrainingJob&) = delete;
  TrainingJob& operator=(const TrainingJob&) = delete;

  ProcessCluster& cluster() { return *cluster_; }
  const std::string& state_directory() const {
    return options_.state_directory;
  }
  const std::string& checkpoints() const { return options_.checkpoints; }
  const std::string& job_file() const { return job_file_; }
  // The certificate of a task, if the job has them: "chief-0".
  std::string tls_dir(const std::string& task) const {
    return directory_.Join("tls-" + task);
  }

  // Returns all tasks, ps first.
  std::vector<std::pair<std::string, int>> Tasks() const;

  absl::Status StartAll() { return cluster_->StartAll(); }

  // Starts all tasks, servers once the chief knows all others: for jobs that do
  // not wait long for a worker. Needs servers and a chief task.
  absl::Status StartServersLast();

  // Starts all tasks and waits until all have ended with code 0.
  absl::Status Run();

  // Asks the chief until it answers.
  absl::StatusOr<JobStatus> GetStatus() const;
  // Asks it once. For a chief that may be away for long, or be busy.
  absl::StatusOr<JobStatus> TryStatus() const;

  // Waits until the chief reports that `step` is committed. Fails if the job
  // ends before.
  absl::Status WaitForStep(int64_t step) const;

  // Returns the chief's log; empty if there is none.
  std::string ChiefLog() const;

  // Waits until all tasks but this worker have ended. If one has not ended with
  // code 0, the test fails.
  void ExpectOthersSucceed(int worker);

  // Returns the names of the state files that servers have left.
  std::vector<std::string> StateFiles() const;

 private:
  explicit TrainingJob(const Options& options) : options_(options) {}

  absl::Status AwaitRegistered(const std::string& task, int index);
  absl::Status WriteJob() const;
  absl::Status Secure();
  absl::Status Prepare();
  ProcessCluster::Options Plan() const;

  TempDir directory_;
  Options options_;
  std::string job_file_;
  std::unique_ptr<ProcessCluster> cluster_;
  std::unique_ptr<cli::CoordinatorClient> chief_;
};

// Makes the workers session_worker, a program with variables and first values
// of its own.
void UseProgram(TrainingJob::Options& options);

// Returns the bytes of a file of a checkpoint, such as "model.safetensors";
// without such a file the test fails.
std::string ReadCheckpoint(const std::string& checkpoints, int64_t step,
                           const std::string& file);

// Puts a file in place of a directory, which prevents writing there, even for
// root; TakeOutOfTheWay() brings the directory back. Both at one instant: a
// task that writes there meanwhile would make the directory anew.
void PutInTheWay(const std::string& directory);
void TakeOutOfTheWay(const std::string& directory);

// Removes the state file that a ps has left, of the one job in the directory.
// Without such a file the test fails.
void RemoveState(const TrainingJob& job, int server);

// Expects equal bytes in both files of the checkpoints of `step`.
void ExpectSameBits(const std::string& checkpoints, const std::string& others,
                    int64_t step);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_E2E_TRAINING_JOB_H_
