#ifndef LOCKSTEP_STRATEGY_INPUT_DATASET_H_
#define LOCKSTEP_STRATEGY_INPUT_DATASET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/input/element.h"
#include "strategy/input/streams.h"

namespace lockstep::strategy {

// Dataset is a source of elements and the steps that they go through, which can
// be read as often as needed. Methods add a step and leave this one as it is.
//
//   Dataset::Range(100).Batch(20).Repeat()
//
// Threads: an immutable value; its functions are called by the threads that
//          read it.
// Errors:  steps with impossible arguments are reported by Open().
class Dataset {
 public:
  // `count` elements, made by their number.
  static Dataset Counted(
      int64_t count, std::function<absl::StatusOr<Element>(int64_t i)> make);
  // The int64 scalars 0 to count - 1.
  static Dataset Range(int64_t count);
  // The elements of files; `cycle` files are read in turn.
  static Dataset FromFiles(std::vector<std::string> files, FileOpener open,
                           int cycle = 1);

  // `size` elements become one batch.
  Dataset Batch(int64_t size, bool drop_remainder = false) const;
  Dataset Repeat(std::optional<int64_t> times = std::nullopt) const;
  // Each `count`-th element, beginning with `index`.
  Dataset Shard(int64_t count, int64_t index) const;
  Dataset Take(int64_t count) const;
  Dataset Skip(int64_t count) const;
  // Reads ahead in a thread.
  Dataset Prefetch(int64_t buffer) const;
  // `map` must leave the number of examples of a batch as it is.
  Dataset Map(std::function<absl::StatusOr<Element>(Element)> map) const;
  // `map` may change the number of examples.
  Dataset MapBatches(std::function<absl::StatusOr<Element>(Element)> map) const;
  Dataset Filter(
      std::function<absl::StatusOr<bool>(const Element&)> keep) const;

  // Whether a step batches.
  bool IsBatched() const;
  // The number of examples of a batch, where the steps after the last batch
  // leave it known: all of them if that batch drops remainders, otherwise
  // Repeat, Prefetch, Take and Skip alone.
  std::optional<int64_t> BatchSize() const;
  // Whether all batches have the same number of examples.
  bool HasStaticShapes() const;
  // Whether the elements come from files.
  bool ReadsFiles() const;

  // The same steps over files index, index + count, ... alone. Where there are
  // fewer files than `count`, reading the first element fails.
  //
  //   kNotFound  the elements do not come from files
  absl::StatusOr<Dataset> ShardFiles(int64_t count, int64_t index) const;

  // Begins to read.
  //
  //   kInvalidArgument  a step has an impossible argument
  StreamOr Open() const;

 private:
  enum class Kind { kSource, kBatch, kTransparent, kMap, kMapBatches, kOther };
  struct Step {
    Kind kind = Kind::kSource;
    std::shared_ptr<const Step> before;  // null for a source
    std::function<StreamOr(const Opener& before)> open;
    absl::Status mistake;  // of the arguments
    int64_t batch_size = 0;
    bool drop_remainder = false;
    // For a source that reads files.
    std::vector<std::string> files;
    FileOpener open_file;
    int cycle = 1;
  };
  explicit Dataset(std::shared_ptr<const Step> last) : last_(std::move(last)) {}
  Dataset Then(Kind kind, absl::Status mistake,
               std::function<StreamOr(const Opener&)> open) const;
  static StreamOr OpenStep(const std::shared_ptr<const Step>& step);
  static std::shared_ptr<const Step> WithSource(
      const std::shared_ptr<const Step>& step,
      const std::function<Step(const Step&)>& change);

  std::shared_ptr<const Step> last_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_INPUT_DATASET_H_
