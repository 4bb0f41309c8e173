#ifndef LOCKSTEP_WORKER_DATA_EXAMPLES_H_
#define LOCKSTEP_WORKER_DATA_EXAMPLES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "common/plan/example_shape.h"
#include "worker/data/batch.h"
#include "worker/data/batch_schedule.h"

namespace lockstep::worker {

// Examples is a whole data set in memory, of pictures or text.
//
// Threads: safe to share.
struct Examples {
  int64_t count = 0;
  int64_t height = 1;  // of pictures, as the next two
  int64_t width = 1;
  int64_t channels = 1;
  int64_t classes = 0;
  int64_t tokens = 0;  // bytes of each text; 0: pictures
  // The number of classes without a picture, and the first of them.
  int64_t empty_classes = 0;
  int64_t first_empty_class = 0;

  // Returns the examples of these ids, in that order.
  //
  //   kInvalidArgument  an id outside [0, count)
  std::function<absl::StatusOr<Batch>(absl::Span<const int64_t> ids)> load;
};

ExampleShape ShapeOf(const Examples& examples);

// Read the examples that the job trains on, or is scored on. Errors are those
// of LoadDataset() and LoadText().
absl::StatusOr<Examples> LoadTrainingExamples(const DataConfig& data);
absl::StatusOr<Examples> LoadTestExamples(const DataConfig& data);

// Reads features without labels: each example has the label 0 of `classes`.
// Errors are those of ReadArrayFile() and MakeDataset().
absl::StatusOr<Examples> LoadFeatures(const std::string& path, int64_t classes);

// Returns the number of examples that the job trains on, if it can be found
// quickly: for pictures from their labels, for a text from its size (a gzipped
// text of at most 64 MiB is read). Otherwise returns nothing, also if the files
// cannot be read.
std::optional<int64_t> CountTrainingExamples(const DataConfig& data);

// Returns a source whose examples `schedule` chooses. One thread at a time may
// use it.
BatchSource MakeBatchSource(BatchSchedule schedule, const Examples& examples);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_EXAMPLES_H_
