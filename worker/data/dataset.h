#ifndef LOCKSTEP_WORKER_DATA_DATASET_H_
#define LOCKSTEP_WORKER_DATA_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/idx.h"

namespace lockstep::worker {

// Dataset is labelled images, all of one size, in memory.
//
// Threads: constant once made, so safe to share.
struct Dataset {
  // Values of one image: height * width * channels.
  int64_t image_size() const { return height * width * channels; }

  int64_t num_examples = 0;  // > 0
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;
  int64_t classes = 0;  // labels are below it
  // Classes of which there is no example, and the first of them.
  int64_t empty_classes = 0;
  int64_t first_empty_class = 0;
  std::vector<uint8_t> images;  // [num_examples, height, width, channels]
  std::vector<int32_t> labels;  // [num_examples], each in [0, classes)
};

// Joins images of 3 dimensions (one channel) or 4 with labels of 1 dimension.
// `classes` is how many there are; 0: the largest label plus one.
//
//   kInvalidArgument  other dimensions, no examples, empty images, not one
//                     label for each image, or a label beyond the classes
absl::StatusOr<Dataset> MakeImageDataset(IdxArray images,
                                         const IdxArray& labels,
                                         int64_t classes = 0);

// Reads a pair of IDX files, each plain or gzipped. Fails as ReadIdxFile() and
// MakeImageDataset() do; every error names the path that it is about.
absl::StatusOr<Dataset> LoadImageDataset(const std::string& images_path,
                                         const std::string& labels_path,
                                         int64_t classes = 0);

// The largest label of an IDX file, plus one. Fails as ReadIdxFile() does.
//
//   kInvalidArgument  the file has no labels
absl::StatusOr<int64_t> CountClasses(const std::string& labels_path);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_DATASET_H_
