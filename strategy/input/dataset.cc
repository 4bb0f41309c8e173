#include "strategy/input/dataset.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {
namespace {

absl::Status AtLeast(const char* name, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, ", but must be at least ", least));
}

absl::Status CheckShard(int64_t count, int64_t index) {
  absl::Status fits = AtLeast("the number of shards", count, 1);
  // Update() keeps the first error.
  fits.Update(AtLeast("the index of a shard", index, 0));
  if (index >= count) {
    fits.Update(absl::InvalidArgumentError(
        absl::StrCat("the number of shards is ", count, ", but must be above ",
                     index, ", the index of one")));
  }
  return fits;
}

// Returns an error for a function that cannot be called.
template <typename Function>
absl::Status CheckGiven(const char* name, const Function& function) {
  if (function != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the function ", name, " is null; pass one"));
}

// Returns a function of the program so that one thread at a time is in it: the
// thread of a prefetch may be, while another asks for Like().
template <typename Argument>
std::function<absl::StatusOr<Element>(Argument)> OneAtATime(
    std::function<absl::StatusOr<Element>(Argument)> function) {
  if (function == nullptr) return function;
  return [function = std::move(function), mutex = std::make_shared<Mutex>()](
             Argument argument) -> absl::StatusOr<Element> {
    MutexLock lock(*mutex);
    return function(std::move(argument));
  };
}

}  // namespace

Dataset Dataset::Counted(int64_t count,
                         std::function<absl::StatusOr<Element>(int64_t i)> make,
                         std::optional<Element> like) {
  make = OneAtATime(std::move(make));
  Step step;
  step.like =
      [count, make, like = std::move(like)](
          std::optional<Element>) -> absl::StatusOr<std::optional<Element>> {
    if (like.has_value() || count <= 0 || make == nullptr) return like;
    return make(0);
  };
  step.mistake = AtLeast("the number of elements", count, 0);
  step.mistake.Update(CheckGiven("make", make));
  step.open = [count, make = std::move(make)](const Opener&) -> StreamOr {
    return CountedStream(count, make);
  };
  return Dataset(std::make_shared<const Step>(std::move(step)));
}

Dataset Dataset::Range(int64_t count) {
  const auto number = [](int64_t i) -> absl::StatusOr<Element> {
    return Element{Value::Of<int64_t>(ElementType::kInt64, {}, {i})};
  };
  return Counted(count, number, *number(0));
}

Dataset Dataset::FromFiles(std::vector<std::string> files, FileOpener open,
                           int cycle, std::optional<Element> like) {
  Step step;
  step.like = [like = std::move(like)](std::optional<Element>)
      -> absl::StatusOr<std::optional<Element>> { return like; };
  step.mistake = AtLeast("cycle", cycle, 1);
  step.mistake.Update(CheckGiven("open", open));
  step.reads_files = true;
  step.files = files;
  step.open_file = open;
  step.cycle = cycle;
  step.open = [files = std::move(files), open = std::move(open),
               cycle](const Opener&) -> StreamOr {
    return FileStream(files, open, cycle);
  };
  return Dataset(std::make_shared<const Step>(std::move(step)));
}

Dataset Dataset::Then(Kind kind, absl::Status mistake,
                      std::function<StreamOr(const Opener&)> open) const {
  Step step;
  step.kind = kind;
  step.before = last_;
  step.open = std::move(open);
  step.mistake = std::move(mistake);
  return Dataset(std::make_shared<const Step>(std::move(step)));
}

Dataset Dataset::Batch(int64_t size, bool drop_remainder) const {
  Step step;
  step.kind = Kind::kBatch;
  step.before = last_;
  step.mistake = AtLeast("the size of a batch", size, 1);
  step.batch_size = size;
  step.drop_remainder = drop_remainder;
  step.like = [size, drop_remainder](std::optional<Element> example)
      -> absl::StatusOr<std::optional<Element>> {
    if (!example.has_value()) return example;
    return BatchLike(*example, drop_remainder ? size : 0);
  };
  step.open = [size, drop_remainder](const Opener& before) -> StreamOr {
    LOCKSTEP_ASSIGN_OR_RETURN(auto input, before());
    return BatchStream(std::move(input), size, drop_remainder);
  };
  return Dataset(std::make_shared<const Step>(std::move(step)));
}

Dataset Dataset::Repeat(std::optional<int64_t> times) const {
  // An absent number, which is for ever, is no mistake.
  return Then(Kind::kTransparent, AtLeast("times", times.value_or(0), 0),
              [times](const Opener& before) -> StreamOr {
                return RepeatStream(before, times);
              });
}

Dataset Dataset::Shard(int64_t count, int64_t index) const {
  return Then(Kind::kOther, CheckShard(count, index),
              [count, index](const Opener& before) -> StreamOr {
                LOCKSTEP_ASSIGN_OR_RETURN(auto input, before());
                return SelectStream(std::move(input), index, count,
                                    std::nullopt);
              });
}

Dataset Dataset::Take(int64_t count) const {
  return Then(Kind::kTransparent, AtLeast("the number to take", count, 0),
              [count](const Opener& before) -> StreamOr {
                LOCKSTEP_ASSIGN_OR_RETURN(auto input, before());
                return SelectStream(std::move(input), 0, 1, count);
              });
}

Dataset Dataset::Skip(int64_t count) const {
  return Then(Kind::kTransparent, AtLeast("the number to skip", count, 0),
              [count](const Opener& before) -> StreamOr {
                LOCKSTEP_ASSIGN_OR_RETURN(auto input, before());
                return SelectStream(std::move(input), count, 1, std::nullopt);
              });
}

Dataset Dataset::Prefetch(int64_t buffer) const {
  return Then(Kind::kTransparent, AtLeast("the buffer", buffer, 1),
              [buffer](const Opener& before) -> StreamOr {
                LOCKSTEP_ASSIGN_OR_RETURN(auto input, before());
                return PrefetchStream(std::move(input),
                                      static_cast<size_t>(buffer));
              });
}

Dataset Dataset::Map(
    std::function<absl::StatusOr<Element>(Element)> map) const {
  map = OneAtATime(std::move(map));
  Step step = *Mapped(Kind::kMap, map).last_;
  step.like = [map](std::optional<Element> element)
      -> absl::StatusOr<std::optional<Element>> {
    if (!element.has_value() || map == nullptr) return std::nullopt;
    return map(*std::move(element));
  };
  return Dataset(std::make_shared<const Step>(std::move(step)));
}

Dataset Dataset::MapBatches(
    std::function<absl::StatusOr<Element>(Element)> map) const {
  map = OneAtATime(std::move(map));
  Step step = *Mapped(Kind::kMapBatches, map).last_;
  step.like = [map = std::move(map)](std::optional<Element> element)
      -> absl::StatusOr<std::optional<Element>> {
    if (!element.has_value() || map == nullptr) return std::nullopt;
    LOCKSTEP_ASSIGN_OR_RETURN(const Element made, map(*std::move(element)));
    return EmptyLike(made);
  };
  return Dataset(std::make_shared<const Step>(std::move(step)));
}

Dataset Dataset::Mapped(
    Kind kind,
    const std::function<absl::StatusOr<Element>(Element)>& map) const {
  return Then(
      kind, CheckGiven("map", map), [map](const Opener& before) -> StreamOr {
        LOCKSTEP_ASSIGN_OR_RETURN(auto input, before());
        return ChangeStream(
            std::move(input),
            [map](Element element) -> absl::StatusOr<std::optional<Element>> {
              LOCKSTEP_ASSIGN_OR_RETURN(Element made, map(std::move(element)));
              return std::optional<Element>(std::move(made));
            });
      });
}

Dataset Dataset::Filter(
    std::function<absl::StatusOr<bool>(const Element&)> keep) const {
  absl::Status given = CheckGiven("keep", keep);
  return Then(
      Kind::kOther, std::move(given),
      [keep = std::move(keep)](const Opener& before) -> StreamOr {
        LOCKSTEP_ASSIGN_OR_RETURN(auto input, before());
        return ChangeStream(
            std::move(input),
            [keep](Element element) -> absl::StatusOr<std::optional<Element>> {
              LOCKSTEP_ASSIGN_OR_RETURN(const bool kept, keep(element));
              if (!kept) return std::nullopt;
              return std::optional<Element>(std::move(element));
            });
      });
}

bool Dataset::IsBatched() const {
  for (const Step* step = last_.get(); step != nullptr;
       step = step->before.get()) {
    if (step->kind == Kind::kBatch) return true;
  }
  return false;
}

std::optional<int64_t> Dataset::BatchSize() const {
  bool transparent = true;  // all steps so far, from the last on
  for (const Step* step = last_.get(); step != nullptr;
       step = step->before.get()) {
    if (step->kind == Kind::kBatch) {
      // TensorFlow infers the size from static shapes, which a dropped
      // remainder gives and later steps keep; else it walks back to the batch
      // step, through steps that it knows to keep elements as they are.
      if (!step->drop_remainder && !transparent) return std::nullopt;
      return step->batch_size;
    }
    if (step->kind == Kind::kMapBatches) return std::nullopt;
    transparent = transparent && step->kind == Kind::kTransparent;
  }
  return std::nullopt;
}

bool Dataset::HasStaticShapes() const {
  for (const Step* step = last_.get(); step != nullptr;
       step = step->before.get()) {
    if (step->kind == Kind::kMapBatches ||
        (step->kind == Kind::kBatch && !step->drop_remainder)) {
      return false;
    }
  }
  return true;
}

std::optional<Element> Dataset::Like() const {
  std::vector<const Step*> steps;
  for (const Step* step = last_.get(); step != nullptr;
       step = step->before.get()) {
    steps.push_back(step);
  }
  std::optional<Element> like;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if ((*step)->like == nullptr) continue;
    absl::StatusOr<std::optional<Element>> next = (*step)->like(like);
    // A function that takes no such element leaves its results unknown.
    if (!next.ok() || !next->has_value()) return std::nullopt;
    like = *std::move(next);
  }
  return like;
}

bool Dataset::ReadsFiles() const {
  const Step* step = last_.get();
  while (step->before != nullptr) step = step->before.get();
  return step->reads_files;
}

std::shared_ptr<const Dataset::Step> Dataset::WithSource(
    const std::shared_ptr<const Step>& step,
    const std::function<Step(const Step&)>& change) {
  if (step->before == nullptr) {
    return std::make_shared<const Step>(change(*step));
  }
  // Steps are shared between data sets, so those after the source are copied.
  Step copy = *step;
  copy.before = WithSource(step->before, change);
  return std::make_shared<const Step>(std::move(copy));
}

absl::StatusOr<Dataset> Dataset::ShardFiles(int64_t count,
                                            int64_t index) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckShard(count, index));
  if (!ReadsFiles()) {
    return absl::NotFoundError(
        "the data set reads no files, so they cannot be shared out; use the "
        "policy kData");
  }
  return Dataset(WithSource(last_, [&](const Step& source) {
    std::vector<std::string> mine;
    for (size_t i = static_cast<size_t>(index); i < source.files.size();
         i += static_cast<size_t>(count)) {
      mine.push_back(source.files[i]);
    }
    Step sharded =
        *FromFiles(std::move(mine), source.open_file, source.cycle).last_;
    sharded.like = source.like;
    const auto all = static_cast<int64_t>(source.files.size());
    // Too few files fail with the first element, as in TensorFlow, also under
    // kAuto.
    if (all >= count) return sharded;
    sharded.open = [all, count](const Opener&) -> StreamOr {
      return CountedStream(1, [all, count](int64_t) -> absl::StatusOr<Element> {
        return absl::InvalidArgumentError(absl::StrCat(
            "there are ", all, " files for ", count,
            " workers; each must have one, or use the policy kData"));
      });
    };
    return sharded;
  }));
}

StreamOr Dataset::OpenStep(const std::shared_ptr<const Step>& step) {
  return step->open(
      [earlier = step->before]() -> StreamOr { return OpenStep(earlier); });
}

absl::Status Dataset::Check() const {
  // Here and not in OpenStep(): Repeat() opens the steps before it with its
  // first element only.
  std::vector<const Step*> steps;
  for (const Step* step = last_.get(); step != nullptr;
       step = step->before.get()) {
    steps.push_back(step);
  }
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    LOCKSTEP_RETURN_IF_ERROR((*step)->mistake);
  }
  return absl::OkStatus();
}

StreamOr Dataset::Open() const {
  LOCKSTEP_RETURN_IF_ERROR(Check());
  return OpenStep(last_);
}

}  // namespace lockstep::strategy
