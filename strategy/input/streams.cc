#include "strategy/input/streams.h"

#include <deque>
#include <thread>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/process/new_thread.h"

namespace lockstep::strategy {
namespace {

using NextOr = absl::StatusOr<std::optional<Element>>;
using Stream = std::unique_ptr<ElementStream>;

class Counted final : public ElementStream {
 public:
  Counted(int64_t count, std::function<absl::StatusOr<Element>(int64_t)> make)
      : count_(count), make_(std::move(make)) {}

  NextOr Next() override {
    if (next_ >= count_) return std::nullopt;
    LOCKSTEP_ASSIGN_OR_RETURN(Element made, make_(next_++));
    return std::optional<Element>(std::move(made));
  }

 private:
  const int64_t count_;
  const std::function<absl::StatusOr<Element>(int64_t)> make_;
  int64_t next_ = 0;
};

class Files final : public ElementStream {
 public:
  Files(std::vector<std::string> files, FileOpener open, size_t cycle)
      : files_(std::move(files)), open_(std::move(open)), slots_(cycle) {}

  NextOr Next() override {
    // After a round without an element, all slots are empty and no file is
    // left.
    for (size_t idle = 0; idle <= slots_.size() || next_ < files_.size();
         ++idle) {
      Stream& slot = slots_[turn_];
      turn_ = (turn_ + 1) % slots_.size();
      if (slot == nullptr) {
        if (next_ == files_.size()) continue;
        LOCKSTEP_ASSIGN_OR_RETURN(slot, open_(files_[next_++]));
      }
      LOCKSTEP_ASSIGN_OR_RETURN(std::optional<Element> element, slot->Next());
      if (element.has_value()) return element;
      // The file that takes the slot is opened one round later, as by
      // TensorFlow's interleave.
      slot = nullptr;
    }
    return std::nullopt;
  }

 private:
  const std::vector<std::string> files_;
  const FileOpener open_;
  std::vector<Stream> slots_;
  size_t turn_ = 0;
  size_t next_ = 0;
};

class Batches final : public ElementStream {
 public:
  Batches(Stream input, int64_t size, bool drop_remainder)
      : input_(std::move(input)),
        size_(size),
        drop_remainder_(drop_remainder) {}

  NextOr Next() override {
    std::vector<Element> examples;
    while (static_cast<int64_t>(examples.size()) < size_) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::optional<Element> next, input_->Next());
      if (!next.has_value()) break;
      examples.push_back(*std::move(next));
    }
    const bool whole = static_cast<int64_t>(examples.size()) == size_;
    if (examples.empty() || (drop_remainder_ && !whole)) return std::nullopt;
    LOCKSTEP_ASSIGN_OR_RETURN(Element batch, StackExamples(examples));
    return std::optional<Element>(std::move(batch));
  }

 private:
  const Stream input_;
  const int64_t size_;
  const bool drop_remainder_;
};

class Repeats final : public ElementStream {
 public:
  Repeats(Opener open, std::optional<int64_t> times)
      : open_(std::move(open)), left_(times) {}

  NextOr Next() override {
    bool fresh = false;
    while (true) {
      if (input_ == nullptr) {
        if (ended_ || (left_.has_value() && *left_ <= 0)) return std::nullopt;
        if (left_.has_value()) --*left_;
        LOCKSTEP_ASSIGN_OR_RETURN(input_, open_());
        fresh = true;
      }
      LOCKSTEP_ASSIGN_OR_RETURN(std::optional<Element> next, input_->Next());
      if (next.has_value()) return next;
      ended_ = fresh && !left_.has_value();  // nothing to repeat for ever
      input_ = nullptr;
    }
  }

 private:
  const Opener open_;
  std::optional<int64_t> left_;
  Stream input_;
  bool ended_ = false;
};

class Changes final : public ElementStream {
 public:
  Changes(Stream input, Change change)
      : input_(std::move(input)), change_(std::move(change)) {}

  NextOr Next() override {
    while (true) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::optional<Element> next, input_->Next());
      if (!next.has_value()) return next;
      LOCKSTEP_ASSIGN_OR_RETURN(next, change_(*std::move(next)));
      if (next.has_value()) return next;
    }
  }

 private:
  const Stream input_;
  const Change change_;
};

class Selection final : public ElementStream {
 public:
  Selection(Stream input, int64_t first, int64_t every,
            std::optional<int64_t> end)
      : input_(std::move(input)), first_(first), every_(every), end_(end) {}

  NextOr Next() override {
    while (!end_.has_value() || place_ < *end_) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::optional<Element> next, input_->Next());
      if (!next.has_value()) return next;
      const int64_t place = place_++;
      if (place >= first_ && (place - first_) % every_ == 0) return next;
    }
    return std::nullopt;
  }

 private:
  const Stream input_;
  const int64_t first_;
  const int64_t every_;
  const std::optional<int64_t> end_;
  int64_t place_ = 0;
};

class Prefetch final : public ElementStream {
 public:
  Prefetch(Stream input, size_t buffer)
      : input_(std::move(input)), buffer_(buffer) {
    // Without one, each element is read when it is asked for.
    if (auto thread = NewThread([this] { Read(); }); thread.ok()) {
      thread_ = *std::move(thread);
    }
  }
  ~Prefetch() override {
    if (!thread_.joinable()) return;
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.SignalAll();
    }
    // Waits for a read that is under way; a stream cannot be interrupted.
    thread_.join();
  }

  NextOr Next() override {
    if (!thread_.joinable()) return input_->Next();
    MutexLock lock(mutex_);
    while (read_.empty()) changed_.Wait(mutex_);
    NextOr next = read_.front();
    const bool last = !next.ok() || !next->has_value();
    if (!last) read_.pop_front();  // the end stays
    changed_.SignalAll();
    return next;
  }

 private:
  void Read() {
    while (true) {
      NextOr next = input_->Next();
      const bool last = !next.ok() || !next->has_value();
      MutexLock lock(mutex_);
      while (!stopping_ && read_.size() >= buffer_) changed_.Wait(mutex_);
      if (stopping_) return;
      read_.push_back(std::move(next));
      changed_.SignalAll();
      if (last) return;
    }
  }

  const Stream input_;  // the thread's, if there is one
  const size_t buffer_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<NextOr> read_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ElementStream> CountedStream(
    int64_t count, std::function<absl::StatusOr<Element>(int64_t i)> make) {
  return std::make_unique<Counted>(count, std::move(make));
}

std::unique_ptr<ElementStream> FileStream(std::vector<std::string> files,
                                          FileOpener open, int cycle) {
  return std::make_unique<Files>(std::move(files), std::move(open),
                                 static_cast<size_t>(cycle));
}

std::unique_ptr<ElementStream> BatchStream(std::unique_ptr<ElementStream> input,
                                           int64_t size, bool drop_remainder) {
  return std::make_unique<Batches>(std::move(input), size, drop_remainder);
}

std::unique_ptr<ElementStream> RepeatStream(Opener open,
                                            std::optional<int64_t> times) {
  return std::make_unique<Repeats>(std::move(open), times);
}

std::unique_ptr<ElementStream> ChangeStream(
    std::unique_ptr<ElementStream> input, Change change) {
  return std::make_unique<Changes>(std::move(input), std::move(change));
}

std::unique_ptr<ElementStream> SelectStream(
    std::unique_ptr<ElementStream> input, int64_t first, int64_t every,
    std::optional<int64_t> end) {
  return std::make_unique<Selection>(std::move(input), first, every, end);
}

std::unique_ptr<ElementStream> PrefetchStream(
    std::unique_ptr<ElementStream> input, size_t buffer) {
  return std::make_unique<Prefetch>(std::move(input), buffer);
}

}  // namespace lockstep::strategy
