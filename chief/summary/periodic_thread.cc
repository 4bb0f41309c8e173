#include "chief/summary/periodic_thread.h"

#include <utility>

#include "common/base/clock.h"

namespace lockstep::chief {

PeriodicThread::PeriodicThread(absl::Duration every, std::function<void()> work)
    : every_(every), work_(std::move(work)), thread_([this] { Run(); }) {}

PeriodicThread::~PeriodicThread() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.Signal();
  }
  thread_.join();
}

void PeriodicThread::Run() {
  while (Rest()) work_();
  work_();
}

bool PeriodicThread::Rest() {
  const Clock& clock = Clock::Real();
  const absl::Time until = clock.Now() + every_;
  MutexLock lock(mutex_);
  while (!ended_) {
    const absl::Duration left = until - clock.Now();
    if (left <= absl::ZeroDuration()) return true;
    changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(left));
  }
  return false;
}

}  // namespace lockstep::chief
