#ifndef LOCKSTEP_WORKER_TABLES_EXAMPLE_COLUMNS_H_
#define LOCKSTEP_WORKER_TABLES_EXAMPLE_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/job/job_config.h"

namespace lockstep::worker {

// The features of a tf.train.Example that a model reads. A categorical feature
// is one text or one integer, which counts as its decimal digits; a cross is
// the pair of values of two of them.
struct ColumnLayout {
  std::vector<std::string> categorical = {};
  std::vector<std::pair<size_t, size_t>> crosses =
      {};                                 // places in `categorical`
  std::vector<std::string> numeric = {};  // one finite number each
  std::string label = "label";            // as BinaryLabel()
  int64_t wide_rows = 1;  // rows for hashes of categories and crosses; > 0
  int64_t deep_rows = 1;  // rows for hashes of one feature's values; > 0

  size_t wide_columns() const { return categorical.size() + crosses.size(); }
};

//   kInvalidArgument  model.features, embedding_rows or categorical is missing,
//                     a category is there twice, a cross is no pair of two of
//                     them, or row_limit is set; says which
absl::StatusOr<ColumnLayout> ColumnLayoutOf(const ModelConfig& model);

// Examples one after the other, with their values as rows of tables.
struct ColumnExamples {
  std::vector<bool> labels = {};   // true: the positive class
  std::vector<int64_t> wide = {};  // wide_columns() each: categories, crosses
  std::vector<int64_t> deep = {};  // one for each category of each example
  std::vector<float> numeric = {};

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

// Appends the examples of a TFRecord file with contents `bytes`. `source` names
// it in errors.
//
//   kInvalidArgument  a record is no tf.train.Example, lacks a feature, or
//                     has it in another form; names source, record and feature
//   kDataLoss         as TfRecordReader says
//
// `examples` are then as before.
absl::Status ParseExamples(absl::string_view bytes, const std::string& source,
                           const ColumnLayout& layout,
                           ColumnExamples& examples);

// Appends the examples of a file, plain or gzipped.
//
//   and the errors of ReadDataFile(), which name the path
absl::Status ReadExampleFile(const std::string& path,
                             const ColumnLayout& layout,
                             ColumnExamples& examples);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TABLES_EXAMPLE_COLUMNS_H_
