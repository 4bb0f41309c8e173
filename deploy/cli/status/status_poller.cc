#include "deploy/cli/status/status_poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace lockstep::cli {

StatusPoller::StatusPoller(const std::string& address, const Options& options)
    : options_(options),
      event_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      client_(address),
      thread_([this] { Run(); }) {}

StatusPoller::~StatusPoller() {
  {
    MutexLock lock(mutex_);
    quit_ = true;
    wake_.SignalAll();
  }
  thread_.join();
  close(event_fd_);
}

StatusPoller::News StatusPoller::TakeNews() {
  // Read first: an event between the two steps wakes the reader once in vain;
  // in the other order it would be lost.
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(event_fd_, &count, sizeof(count));
  MutexLock lock(mutex_);
  return std::exchange(news_, News());
}

void StatusPoller::AskToStop(const std::string& reason) {
  MutexLock lock(mutex_);
  stop_reason_ = reason;
  wake_.SignalAll();
}

void StatusPoller::Run() {
  while (true) {
    Poll();
    std::optional<std::string> stop_reason;
    {
      MutexLock lock(mutex_);
      if (!quit_ && !stop_reason_.has_value()) {
        wake_.WaitFor(mutex_, absl::ToChronoMilliseconds(options_.interval));
      }
      if (quit_) return;
      stop_reason = std::exchange(stop_reason_, std::nullopt);
    }
    if (stop_reason.has_value()) SendStop(*stop_reason);
  }
}

void StatusPoller::Poll() {
  absl::StatusOr<JobStatus> status = client_.GetStatus(options_.timeout);
  if (!status.ok()) return;  // not up yet, or gone: keep the last answer
  {
    MutexLock lock(mutex_);
    news_.status = *std::move(status);
  }
  Notify();
}

void StatusPoller::SendStop(const std::string& reason) {
  // Any error counts: the launcher then signals the chief.
  const absl::Status status = client_.Stop(reason, options_.timeout);
  if (status.ok()) return;
  {
    MutexLock lock(mutex_);
    news_.stop_refused = true;
  }
  Notify();
}

void StatusPoller::Notify() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(event_fd_, &one, sizeof(one));
}

}  // namespace lockstep::cli
