#include "worker/replicas/replica_crew.h"

#include <utility>

#include "common/process/new_thread.h"

namespace lockstep::worker {

ReplicaCrew::ReplicaCrew(size_t replicas) : work_(replicas), ends_(replicas) {
  for (size_t r = 0; r < replicas && started_.ok(); ++r) {
    absl::StatusOr<std::thread> thread = NewThread([this, r] { Serve(r); });
    started_ = thread.status();
    if (thread.ok()) threads_.push_back(*std::move(thread));
  }
}

ReplicaCrew::~ReplicaCrew() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    answered_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status ReplicaCrew::Run(Work work) {
  if (!started_.ok()) return started_;
  MutexLock lock(mutex_);
  failed_ = false;
  running_ = work_.size();
  // A pointer is enough: Run() returns only when all replicas have ended.
  for (const Work*& each : work_) each = &work;
  answered_.SignalAll();
  // Requests of Tell() may be left when the last replica has ended.
  while (running_ > 0 || !requests_.empty()) {
    if (requests_.empty()) {
      changed_.Wait(mutex_);
    } else {
      Answer();
    }
  }
  return Worst();
}

void ReplicaCrew::Answer() {
  const Request request = std::move(requests_.front());
  requests_.pop_front();
  // A replica that waits must get an answer even after a failure, or Run()
  // would not end.
  absl::Status status = absl::AbortedError("another replica has failed");
  if (!failed_) {
    // The function may take long, and other replicas must be able to ask.
    mutex_.Unlock();
    status = request.function();
    mutex_.Lock();
  }
  if (request.answer == nullptr) return;
  *request.answer = std::move(status);
  answered_.SignalAll();
}

absl::Status ReplicaCrew::Worst() const {
  absl::Status worst;
  for (const absl::Status& end : ends_) {
    if (worst.ok() || (absl::IsAborted(worst) && !end.ok())) worst = end;
    if (!worst.ok() && !absl::IsAborted(worst)) break;
  }
  return worst;
}

absl::Status ReplicaCrew::Ask(std::function<absl::Status()> function) {
  std::optional<absl::Status> answer;
  MutexLock lock(mutex_);
  requests_.push_back({std::move(function), &answer});
  changed_.Signal();
  while (!answer.has_value()) answered_.Wait(mutex_);
  return *answer;
}

void ReplicaCrew::Tell(std::function<void()> function) {
  MutexLock lock(mutex_);
  requests_.push_back({[function = std::move(function)] {
                         function();
                         return absl::OkStatus();
                       },
                       nullptr});
  changed_.Signal();
}

void ReplicaCrew::Serve(size_t replica) {
  while (true) {
    const Work* work = nullptr;
    {
      MutexLock lock(mutex_);
      while (!ending_ && work_[replica] == nullptr) answered_.Wait(mutex_);
      if (ending_) return;
      // Taken, so that a replica that ends early does not begin the same work
      // again.
      work = std::exchange(work_[replica], nullptr);
    }
    absl::Status end = (*work)(replica);
    MutexLock lock(mutex_);
    failed_ = failed_ || !end.ok();
    ends_[replica] = std::move(end);
    --running_;
    changed_.Signal();
  }
}

}  // namespace lockstep::worker
