#include "worker/data/examples.h"

#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/data/batch_loader.h"
#include "worker/data/dataset.h"
#include "worker/data/files/array_file.h"
#include "worker/data/files/data_file.h"
#include "worker/data/files/gunzip.h"
#include "worker/data/text.h"

namespace lockstep::worker {
namespace {

Examples ExamplesOf(Dataset loaded) {
  const auto dataset = std::make_shared<const Dataset>(std::move(loaded));
  return Examples{.count = dataset->num_examples,
                  .height = dataset->height,
                  .width = dataset->width,
                  .channels = dataset->channels,
                  .classes = dataset->classes,
                  .empty_classes = dataset->empty_classes,
                  .first_empty_class = dataset->first_empty_class,
                  .load = [dataset](absl::Span<const int64_t> ids) {
                    return LoadBatch(*dataset, ids);
                  }};
}

absl::StatusOr<Examples> LoadPictures(const std::string& features,
                                      const std::string& labels,
                                      int64_t classes) {
  LOCKSTEP_ASSIGN_OR_RETURN(Dataset dataset,
                            LoadDataset(features, labels, classes));
  return ExamplesOf(std::move(dataset));
}

absl::StatusOr<Examples> LoadTextExamples(const std::string& path,
                                          int64_t length) {
  LOCKSTEP_ASSIGN_OR_RETURN(Text loaded, LoadText(path, length));
  const auto text = std::make_shared<const Text>(std::move(loaded));
  return Examples{.count = text->num_examples(),
                  .classes = Text::kTokens,
                  .tokens = text->length,
                  .load = [text](absl::Span<const int64_t> ids) {
                    return LoadTextBatch(*text, ids);
                  }};
}

// Larger gzipped texts are not read to be counted.
constexpr int64_t kMostToCount = int64_t{64} << 20;

std::optional<int64_t> TextBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  // A failure shows at the check of `file` below, also for a file of less than
  // 2 bytes.
  const int64_t size = file.tellg();
  std::array<uint8_t, 2> start = {};
  file.seekg(0).read(reinterpret_cast<char*>(start.data()), start.size());
  if (!file) return std::nullopt;
  if (!IsGzip(start)) return size;
  const absl::StatusOr<std::vector<uint8_t>> bytes =
      ReadDataFile(path, kMostToCount);
  if (!bytes.ok()) return std::nullopt;
  return static_cast<int64_t>(bytes->size());
}

std::optional<int64_t> CountTextExamples(const DataConfig& data) {
  const std::optional<int64_t> size = TextBytes(data.train_text);
  if (!size.has_value() || data.sequence_length < 1) return std::nullopt;
  // As Text::num_examples(): the last byte is only a label.
  return (*size - 1) / data.sequence_length;
}

}  // namespace

ExampleShape ShapeOf(const Examples& examples) {
  return {.height = examples.height,
          .width = examples.width,
          .channels = examples.channels,
          .classes = examples.classes,
          .tokens = examples.tokens};
}

absl::StatusOr<Examples> LoadTrainingExamples(const DataConfig& data) {
  return data.train_text.empty()
             ? LoadPictures(data.train_images, data.train_labels, data.classes)
             : LoadTextExamples(data.train_text, data.sequence_length);
}

absl::StatusOr<Examples> LoadTestExamples(const DataConfig& data) {
  return data.test_text.empty()
             ? LoadPictures(data.test_images, data.test_labels, data.classes)
             : LoadTextExamples(data.test_text, data.sequence_length);
}

absl::StatusOr<Examples> LoadFeatures(const std::string& path,
                                      int64_t classes) {
  LOCKSTEP_ASSIGN_OR_RETURN(NumberArray features, ReadArrayFile(path));
  const int64_t count = features.dimensions.front();
  // Its header may name any number of examples without elements.
  if (features.bytes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": it holds no numbers"));
  }
  // Labels of 0, as a data set must have some.
  const NumberArray labels{NumberType::kUint8,
                           {count},
                           std::vector<uint8_t>(static_cast<size_t>(count))};
  absl::StatusOr<Dataset> dataset =
      MakeDataset(std::move(features), labels, classes);
  if (dataset.ok()) return ExamplesOf(*std::move(dataset));
  return absl::Status(dataset.status().code(),
                      absl::StrCat(path, ": ", dataset.status().message()));
}

std::optional<int64_t> CountTrainingExamples(const DataConfig& data) {
  if (!data.train_text.empty()) return CountTextExamples(data);
  const absl::StatusOr<NumberArray> labels = ReadArrayFile(data.train_labels);
  if (!labels.ok()) return std::nullopt;
  return labels->dimensions.front();
}

BatchSource MakeBatchSource(BatchSchedule schedule, const Examples& examples) {
  // Mutable: the schedule keeps the shuffle of its present epoch.
  return [schedule = std::move(schedule), load = examples.load](
             int64_t index) mutable -> absl::StatusOr<Batch> {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                              schedule.Batch(index));
    return load(ids);
  };
}

}  // namespace lockstep::worker
