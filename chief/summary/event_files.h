#ifndef LOCKSTEP_CHIEF_SUMMARY_EVENT_FILES_H_
#define LOCKSTEP_CHIEF_SUMMARY_EVENT_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/summary/summary_curves.h"
#include "common/checkpoint/files/posix_file.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// The hyper-parameters of a job for TensorBoard's table: the fields of a job
// file that are numbers, words or enumerators, by their dotted names, such as
// "optimizer.kind", except paths and fields that are not set.
std::map<std::string, std::string> HyperParameters(const JobConfig& job);

// EventFiles appends points to event files, which TensorBoard reads, in a
// folder for each run:
//
//   DIRECTORY/events.out.tfevents.MICROSECONDS.lockstep
//   DIRECTORY/worker_1/events.out.tfevents.MICROSECONDS.lockstep
//
// Each process begins files of its own, so the file of a killed process stays
// as it is. Their names come after those of earlier processes, also if the
// clock was set back: TensorBoard reads files in the order of names. The first
// event of a file voids the points of the same and later steps in earlier
// files: the job has gone back to that step, and will make them again. Within a
// file, such an event also comes before each event whose step is below that of
// the event before it.
//
// A record is written with one call. If the write fails, the next record
// overwrites its remainder.
//
// Threads: not thread-safe.
class EventFiles {
 public:
  // `started` is in the names of the files, unless an earlier process had that
  // time or a later one.
  EventFiles(std::string directory, absl::Time started, const JobConfig& job);

  // Appends points of `wall_time`.
  //
  //   Errors are those of the file system, with the path; points that come
  //   after the one that failed are not written.
  absl::Status Append(const std::vector<SummaryPoints>& runs,
                      absl::Time wall_time);

 private:
  struct File {
    PosixFile file;
    uint64_t size = 0;
    int64_t step = 0;  // of the newest points
  };

  // The records that begin a file, or lead back to a step.
  std::string Beginning(const std::string& run, int64_t step,
                        absl::Time wall_time) const;
  absl::Status AppendTo(const SummaryPoints& points, absl::Time wall_time);

  const std::string directory_;
  const absl::Time started_;
  const std::string job_name_;
  const std::map<std::string, std::string> parameters_;
  std::map<std::string, File> files_;  // by run
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SUMMARY_EVENT_FILES_H_
