#include "worker/data/dataset.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "worker/data/idx_file.h"

namespace lockstep {
namespace {

std::string ShapeOf(const IdxArray& array) {
  return absl::StrJoin(array.dimensions, " x ");
}

absl::Status CheckImages(const IdxArray& images) {
  const size_t rank = images.dimensions.size();
  if (rank != 3 && rank != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("images have the dimensions ", ShapeOf(images),
                     "; give examples x height x width, or x channels too"));
  }
  if (images.values.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "images have the dimensions ", ShapeOf(images), "; all must be > 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(const IdxArray& images, const IdxArray& labels) {
  if (labels.dimensions.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels have the dimensions ", ShapeOf(labels),
                     "; give one dimension, the examples"));
  }
  if (labels.dimensions[0] != images.dimensions[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat(images.dimensions[0], " images but ", labels.dimensions[0],
                     " labels; give two files of the same set"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Dataset> MakeImageDataset(IdxArray images,
                                         const IdxArray& labels) {
  LOCKSTEP_RETURN_IF_ERROR(CheckImages(images));
  LOCKSTEP_RETURN_IF_ERROR(CheckLabels(images, labels));
  Dataset dataset;
  dataset.num_examples = images.dimensions[0];
  dataset.height = images.dimensions[1];
  dataset.width = images.dimensions[2];
  if (images.dimensions.size() == 4) dataset.channels = images.dimensions[3];
  dataset.images = std::move(images.values);
  dataset.labels.assign(labels.values.begin(), labels.values.end());
  dataset.classes =
      int64_t{*std::max_element(dataset.labels.begin(), dataset.labels.end())} +
      1;
  return dataset;
}

absl::StatusOr<Dataset> LoadImageDataset(const std::string& images_path,
                                         const std::string& labels_path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxArray labels, ReadIdxFile(labels_path));
  LOCKSTEP_ASSIGN_OR_RETURN(IdxArray images, ReadIdxFile(images_path));
  absl::StatusOr<Dataset> dataset = MakeImageDataset(std::move(images), labels);
  if (dataset.ok()) return dataset;
  return absl::Status(dataset.status().code(),
                      absl::StrCat(images_path, " and ", labels_path, ": ",
                                   dataset.status().message()));
}

}  // namespace lockstep
