#ifndef LOCKSTEP_WORKER_DATA_DATASET_H_
#define LOCKSTEP_WORKER_DATA_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/files/number_array.h"

namespace lockstep::worker {

// Dataset is labelled examples, all of one size, in memory.
//
// Threads: immutable.
struct Dataset {
  // Values of one example: height * width * channels.
  int64_t example_size() const { return height * width * channels; }

  int64_t num_examples = 0;  // > 0
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;
  int64_t classes = 0;  // labels are below it
  // The number of classes without an example, and the first of them.
  int64_t empty_classes = 0;
  int64_t first_empty_class = 0;
  // [num_examples, height, width, channels]; one of the two is empty. Bytes 0
  // to 255 mean 0 to 1; values mean themselves.
  std::vector<uint8_t> bytes;
  std::vector<float> values;
  std::vector<int32_t> labels;  // [num_examples], each in [0, classes)
};

// Joins features with labels, which must be whole numbers in 1 dimension.
// Features of 2 dimensions are rows of numbers with a height of 1; of 3,
// pictures of one channel; of 4, pictures with channels. Features of kUint8
// become bytes, all others values. `classes` is the number of classes; 0: the
// largest label plus one.
//
//   kInvalidArgument  other dimensions, no examples, empty examples, a feature
//                     that is not finite, not one label for each example, or a
//                     label that is no class
absl::StatusOr<Dataset> MakeDataset(NumberArray features,
                                    const NumberArray& labels,
                                    int64_t classes = 0);

// Reads two files and joins them. Fails as ReadArrayFile() and MakeDataset()
// do; every error names the path that it is about.
absl::StatusOr<Dataset> LoadDataset(const std::string& features_path,
                                    const std::string& labels_path,
                                    int64_t classes = 0);

// Returns the largest label of a file, plus one. Fails as ReadArrayFile() does.
//
//   kInvalidArgument  the file has no labels, or none that are classes
absl::StatusOr<int64_t> CountClasses(const std::string& labels_path);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_DATASET_H_
