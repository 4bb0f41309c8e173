#include "worker/data/dataset.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/data/files/array_file.h"

namespace lockstep::worker {
namespace {

// The largest number of classes of a batch's int32 labels; a larger label is a
// mistake.
constexpr int64_t kMaxClasses = std::numeric_limits<int32_t>::max();

absl::Status CheckFeatures(const NumberArray& features) {
  const size_t rank = features.dimensions.size();
  if (rank < 2 || rank > 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "features have the dimensions ", ShapeText(features.dimensions),
        "; give examples x values, examples x height x width, or x channels "
        "too"));
  }
  if (features.bytes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("features have the dimensions ",
                     ShapeText(features.dimensions), "; all must be > 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(const NumberArray& features,
                         const NumberArray& labels) {
  if (labels.dimensions.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "labels have the dimensions ", ShapeText(labels.dimensions),
        "; give one dimension, the examples"));
  }
  if (labels.dimensions[0] != features.dimensions[0]) {
    return absl::InvalidArgumentError(absl::StrCat(
        features.dimensions[0], " examples but ", labels.dimensions[0],
        " labels; give two files of the same set"));
  }
  return absl::OkStatus();
}

// Returns the largest label plus one, at most kMaxClasses. There must be
// labels. CheckClasses() then reports the larger label.
int64_t ClassesOf(const std::vector<int64_t>& labels) {
  return std::min(*std::max_element(labels.begin(), labels.end()),
                  kMaxClasses - 1) +
         1;
}

absl::Status CheckClasses(const std::vector<int64_t>& labels, int64_t classes,
                          bool given) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "label ", labels[i], " of example ", i, " must be in [0, ",
        given ? classes : kMaxClasses, ")",
        given ? absl::StrCat(", since data.classes is ", classes) : "",
        "; correct the label", given ? ", or data.classes" : ""));
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

void SetShape(const std::vector<int64_t>& dimensions, Dataset& dataset) {
  // Rows of values count as images with a height of 1.
  const bool rows = dimensions.size() == 2;
  dataset.num_examples = dimensions[0];
  dataset.height = rows ? 1 : dimensions[1];
  dataset.width = rows ? dimensions[1] : dimensions[2];
  if (dimensions.size() == 4) dataset.channels = dimensions[3];
}

absl::Status Of(const std::string& what, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(what, ": ", status.message()));
}

}  // namespace

absl::StatusOr<Dataset> MakeDataset(NumberArray features,
                                    const NumberArray& labels,
                                    int64_t classes) {
  LOCKSTEP_RETURN_IF_ERROR(CheckFeatures(features));
  LOCKSTEP_RETURN_IF_ERROR(CheckLabels(features, labels));
  Dataset dataset;
  SetShape(features.dimensions, dataset);
  const absl::StatusOr<std::vector<int64_t>> numbers = ToWholeNumbers(labels);
  if (!numbers.ok()) return Of("labels", numbers.status());
  dataset.classes = classes > 0 ? classes : ClassesOf(*numbers);
  LOCKSTEP_RETURN_IF_ERROR(
      CheckClasses(*numbers, dataset.classes, classes > 0));
  dataset.labels.assign(numbers->begin(), numbers->end());
  FindEmptyClasses(dataset);
  // Bytes stay bytes, a quarter of the memory; LoadBatch() converts them.
  if (features.type == NumberType::kUint8) {
    dataset.bytes = std::move(features.bytes);
    return dataset;
  }
  absl::StatusOr<std::vector<float>> values = ToFloats(features);
  if (!values.ok()) return Of("features", values.status());
  dataset.values = *std::move(values);
  return dataset;
}

absl::StatusOr<Dataset> LoadDataset(const std::string& features_path,
                                    const std::string& labels_path,
                                    int64_t classes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const NumberArray labels,
                            ReadArrayFile(labels_path));
  LOCKSTEP_ASSIGN_OR_RETURN(NumberArray features, ReadArrayFile(features_path));
  absl::StatusOr<Dataset> dataset =
      MakeDataset(std::move(features), labels, classes);
  if (dataset.ok()) return dataset;
  return Of(absl::StrCat(features_path, " and ", labels_path),
            dataset.status());
}

absl::StatusOr<int64_t> CountClasses(const std::string& labels_path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const NumberArray labels,
                            ReadArrayFile(labels_path));
  const absl::StatusOr<std::vector<int64_t>> numbers = ToWholeNumbers(labels);
  if (!numbers.ok()) return Of(labels_path, numbers.status());
  if (numbers->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(labels_path, ": there are no labels"));
  }
  const int64_t classes = ClassesOf(*numbers);
  const absl::Status status = CheckClasses(*numbers, classes, /*given=*/false);
  if (!status.ok()) return Of(labels_path, status);
  return classes;
}

}  // namespace lockstep::worker
