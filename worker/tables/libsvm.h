#ifndef LOCKSTEP_WORKER_TABLES_LIBSVM_H_
#define LOCKSTEP_WORKER_TABLES_LIBSVM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep::worker {

// Examples with a few features each, one after the other.
struct SparseExamples {
  std::vector<bool> labels;  // true: the positive class
  std::vector<size_t> ends;  // of each example's range in the vectors below
  std::vector<int64_t> features;  // from 0; ascending in each example
  std::vector<float> values;      // of the features

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  size_t begin(int64_t example) const {
    return example == 0 ? 0 : ends[example - 1];
  }
  size_t end(int64_t example) const { return ends[example]; }
};

struct LibsvmOptions {
  int64_t index_base = 1;    // the number of the first feature in the text
  int64_t num_features = 1;  // > 0
};

// Appends the examples of a text in the format of LIBSVM, one a line:
//
//   <label> <feature>:<value> <feature>:<value> ...   # a comment
//
// A label above 0 is the positive class. Features may be in any order, but each
// at most once in a line. Empty lines are ignored. `source` names the text in
// errors, such as "train.libsvm".
//
//   kInvalidArgument  names source, line, the error and the allowed form;
//                     `examples` are as before
absl::Status ParseLibsvm(absl::string_view text, const std::string& source,
                         const LibsvmOptions& options,
                         SparseExamples& examples);

// Appends the examples of a file, plain or gzipped.
//
//   and the errors of ReadDataFile(), which name the path
absl::Status ReadLibsvmFile(const std::string& path,
                            const LibsvmOptions& options,
                            SparseExamples& examples);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TABLES_LIBSVM_H_
