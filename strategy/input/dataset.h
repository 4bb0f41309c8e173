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

// Dataset is a source of elements and the steps that transform them. It is
// immutable: each method returns a new Dataset with one more step. It can be
// opened any number of times.
//
//   Dataset::Range(100).Batch(20).Repeat()
//
// Threads: safe to share. Functions that are passed in run in the threads that
//          read an opened stream; those of Counted(), Map() and MapBatches()
//          also in that of Like(), but in one thread at a time.
// Errors:  a step with an invalid argument is reported by Open().
class Dataset {
 public:
  // The elements make(0), ..., make(count - 1). `like` is as Like(); without it
  // make(0) has the types and shapes.
  static Dataset Counted(int64_t count,
                         std::function<absl::StatusOr<Element>(int64_t i)> make,
                         std::optional<Element> like = std::nullopt);
  // The int64 scalars 0 to count - 1.
  static Dataset Range(int64_t count);
  // The elements of files; `cycle` files are open at a time, and one element is
  // read from each in turn. `like` is as Like().
  static Dataset FromFiles(std::vector<std::string> files, FileOpener open,
                           int cycle = 1,
                           std::optional<Element> like = std::nullopt);

  // Stacks `size` elements along a new first axis; the last batch may be
  // smaller, unless `drop_remainder` leaves it out.
  Dataset Batch(int64_t size, bool drop_remainder = false) const;
  // Reads the data set `times` times; for ever if absent.
  Dataset Repeat(std::optional<int64_t> times = std::nullopt) const;
  // Keeps elements index, index + count, index + 2 count, ...
  Dataset Shard(int64_t count, int64_t index) const;
  Dataset Take(int64_t count) const;
  Dataset Skip(int64_t count) const;
  // Reads up to `buffer` elements ahead in a thread.
  Dataset Prefetch(int64_t buffer) const;
  // `map` must leave the number of examples of a batch as it is. It may be
  // called with an element of zeros, or a batch of no examples: see Like().
  Dataset Map(std::function<absl::StatusOr<Element>(Element)> map) const;
  // `map` may change the number of examples.
  Dataset MapBatches(std::function<absl::StatusOr<Element>(Element)> map) const;
  Dataset Filter(
      std::function<absl::StatusOr<bool>(const Element&)> keep) const;

  // True if a step is Batch().
  bool IsBatched() const;
  // The number of examples of a batch; absent if it is unknown. It is known if
  // the last Batch() drops remainders, or if only Repeat(), Prefetch(), Take()
  // and Skip() follow it.
  std::optional<int64_t> BatchSize() const;
  // True if all batches have the same number of examples.
  bool HasStaticShapes() const;
  // True if the elements come from files.
  bool ReadsFiles() const;

  // Returns an element with the types and shapes of all elements, in which a
  // dimension that may differ between elements is 0, and whose numbers mean
  // nothing; nullopt if that is unknown. TensorFlow's name for it is the
  // element spec. Applies the functions of Map() to such an element.
  std::optional<Element> Like() const;

  // Returns the same steps over files index, index + count, ... alone. If there
  // are fewer files than `count`, reading the first element fails.
  //
  //   kInvalidArgument  `count` is below 1, or `index` is not below `count`
  //   kNotFound         the elements do not come from files
  absl::StatusOr<Dataset> ShardFiles(int64_t count, int64_t index) const;

  // OK if Open() would succeed. Reads nothing.
  //
  //   kInvalidArgument  a step has an impossible argument
  absl::Status Check() const;
  // Begins to read. Errors: those of Check().
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
    // Turns Like() of the steps before into that of this one; null: as before.
    std::function<absl::StatusOr<std::optional<Element>>(
        std::optional<Element>)>
        like;
    // For a source that reads files.
    bool reads_files = false;
    std::vector<std::string> files;
    FileOpener open_file;
    int cycle = 1;
  };
  explicit Dataset(std::shared_ptr<const Step> last) : last_(std::move(last)) {}
  Dataset Then(Kind kind, absl::Status mistake,
               std::function<StreamOr(const Opener&)> open) const;
  // The step of Map() or MapBatches(), without its `like`.
  Dataset Mapped(
      Kind kind,
      const std::function<absl::StatusOr<Element>(Element)>& map) const;
  static StreamOr OpenStep(const std::shared_ptr<const Step>& step);
  static std::shared_ptr<const Step> WithSource(
      const std::shared_ptr<const Step>& step,
      const std::function<Step(const Step&)>& change);

  std::shared_ptr<const Step> last_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_INPUT_DATASET_H_
