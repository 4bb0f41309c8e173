#include "worker/data/dataset.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/data/idx_file.h"

namespace lockstep::worker {
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

// The largest label plus one; there are labels.
int64_t ClassesOf(const IdxArray& labels) {
  return int64_t{
             *std::max_element(labels.values.begin(), labels.values.end())} +
         1;
}

absl::Status CheckClasses(const IdxArray& labels, int64_t classes) {
  for (size_t i = 0; i < labels.values.size(); ++i) {
    if (labels.values[i] < classes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("label ", labels.values[i], " of example ", i,
                     " must be in [0, ", classes, "), since data.classes is ",
                     classes, "; correct the label, or data.classes"));
  }
  return absl::OkStatus();
}

void FindEmptyClasses(Dataset& dataset) {
  std::vector<bool> found(static_cast<size_t>(dataset.classes), false);
  for (const int32_t label : dataset.labels) {
    found[static_cast<size_t>(label)] = true;
  }
  dataset.empty_classes = std::count(found.begin(), found.end(), false);
  dataset.first_empty_class =
      std::find(found.begin(), found.end(), false) - found.begin();
}

}  // namespace

absl::StatusOr<Dataset> MakeImageDataset(IdxArray images,
                                         const IdxArray& labels,
                                         int64_t classes) {
  LOCKSTEP_RETURN_IF_ERROR(CheckImages(images));
  LOCKSTEP_RETURN_IF_ERROR(CheckLabels(images, labels));
  Dataset dataset;
  dataset.num_examples = images.dimensions[0];
  dataset.height = images.dimensions[1];
  dataset.width = images.dimensions[2];
  if (images.dimensions.size() == 4) dataset.channels = images.dimensions[3];
  dataset.images = std::move(images.values);
  dataset.labels.assign(labels.values.begin(), labels.values.end());
  dataset.classes = classes > 0 ? classes : ClassesOf(labels);
  LOCKSTEP_RETURN_IF_ERROR(CheckClasses(labels, dataset.classes));
  FindEmptyClasses(dataset);
  return dataset;
}

absl::StatusOr<Dataset> LoadImageDataset(const std::string& images_path,
                                         const std::string& labels_path,
                                         int64_t classes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxArray labels, ReadIdxFile(labels_path));
  LOCKSTEP_ASSIGN_OR_RETURN(IdxArray images, ReadIdxFile(images_path));
  absl::StatusOr<Dataset> dataset =
      MakeImageDataset(std::move(images), labels, classes);
  if (dataset.ok()) return dataset;
  return absl::Status(dataset.status().code(),
                      absl::StrCat(images_path, " and ", labels_path, ": ",
                                   dataset.status().message()));
}

absl::StatusOr<int64_t> CountClasses(const std::string& labels_path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxArray labels, ReadIdxFile(labels_path));
  if (!labels.values.empty()) return ClassesOf(labels);
  return absl::InvalidArgumentError(
      absl::StrCat(labels_path, ": there are no labels"));
}

}  // namespace lockstep::worker
