#include "server/calls/long_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep::server {
namespace {

// The time that a failure waits for its caller to ask again. A caller that has
// been replaced never does.
constexpr absl::Duration kKeepFailure = absl::Seconds(10);

}  // namespace

LongCalls::LongCalls(const Clock& clock)
    : clock_(clock), thread_([this] { Loop(); }) {}

LongCalls::~LongCalls() { Join(); }

void LongCalls::Serve(const std::string& request, Call call, Work work) {
  std::optional<Call> older;
  absl::Status failure;
  {
    MutexLock lock(mutex_);
    // In this order: the process ends; a new request; a request whose work has
    // failed since the last call; one whose work is waiting or under way.
    failure = end_;
    const auto same = std::find_if(
        served_.begin(), served_.end(),
        [&](const auto& entry) { return entry->request == request; });
    if (failure.ok() && same == served_.end()) {
      auto entry = std::make_shared<Entry>();
      entry->request = request;
      entry->work = std::move(work);
      entry->call = std::move(call);
      served_.push_back(entry);
      waiting_.push_back(std::move(entry));
      wake_.SignalAll();
      return;
    }
    if (failure.ok() && !(*same)->failure.ok()) {
      failure = (*same)->failure;
      served_.erase(same);
    } else if (failure.ok()) {
      older = std::exchange((*same)->call, std::move(call));
    }
  }
  // With no lock held, as all ends of calls.
  if (!failure.ok()) return call.end(failure);
  if (older.has_value()) {
    older->end(absl::AbortedError("the same has been asked again"));
  }
}

void LongCalls::Run(std::function<void(const absl::Status&)> work) {
  absl::Status end;
  {
    MutexLock lock(mutex_);
    end = end_;
    if (end.ok()) {
      waiting_.push_back(std::make_shared<Entry>());
      waiting_.back()->run = std::move(work);
      wake_.SignalAll();
      return;
    }
  }
  work(end);
}

void LongCalls::AnswerOld(absl::Time time) {
  std::vector<Call> old;
  {
    MutexLock lock(mutex_);
    std::erase_if(served_, [&](const auto& entry) {
      return !entry->failure.ok() && entry->failed + kKeepFailure < time;
    });
    for (const auto& entry : served_) {
      if (!entry->call.has_value() || entry->call->end_not_yet == nullptr ||
          entry->call->since >= time) {
        continue;
      }
      old.push_back(*std::exchange(entry->call, std::nullopt));
    }
  }
  for (const Call& call : old) call.end_not_yet();
}

void LongCalls::End(const absl::Status& why) {
  std::deque<std::shared_ptr<Entry>> waiting;
  std::vector<Call> calls;
  {
    MutexLock lock(mutex_);
    if (end_.ok()) end_ = why;
    waiting = std::exchange(waiting_, {});
    for (const auto& entry : std::exchange(served_, {})) {
      if (entry->call.has_value()) {
        calls.push_back(*std::exchange(entry->call, std::nullopt));
      }
    }
    wake_.SignalAll();
  }
  for (const Call& call : calls) call.end(why);
  for (const auto& entry : waiting) {
    if (entry->run) entry->run(why);
  }
}

void LongCalls::Join() {
  End(absl::UnavailableError("this ps has ended"));
  if (thread_.joinable()) thread_.join();
}

void LongCalls::Loop() {
  while (true) {
    std::shared_ptr<Entry> entry;
    {
      MutexLock lock(mutex_);
      while (end_.ok() && waiting_.empty()) wake_.Wait(mutex_);
      if (!end_.ok()) return;
      entry = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Do(entry);
  }
}

void LongCalls::Do(const std::shared_ptr<Entry>& entry) {
  if (entry->run) return entry->run(absl::OkStatus());
  const Result result = entry->work();
  // Releases the captured objects before the answer is sent.
  entry->work = nullptr;
  std::optional<Call> call;
  {
    MutexLock lock(mutex_);
    call = std::exchange(entry->call, std::nullopt);
    entry->failure = result.status();
    entry->failed = clock_.Now();
    // A failure without a call stays, for the caller to find. A success need
    // not: repeating the work is quick.
    if (call.has_value() || result.ok()) std::erase(served_, entry);
  }
  if (call.has_value()) call->end(result);
}

}  // namespace lockstep::server
