#include "tests/cuda_on_cpu/stream.h"

#include <sched.h>
#include <time.h>

#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep::cuda_on_cpu {
namespace {

void Sleep(uint64_t microseconds) {
  const timespec time = {0, static_cast<long>(microseconds * 1000)};
  nanosleep(&time, nullptr);
}

}  // namespace

Completion* Completion::Make() {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::deque<Completion*>;  // so that none is a leak
  const std::lock_guard lock(mutex);
  return all.emplace_back(new Completion);
}

void Delays::Wait() {
  if (none_ || pace_ == 0) return;
  const uint64_t number = random_();
  if (pace_ == 1) {
    Sleep(20 + number % 60);
  } else if (number % 16 == 0) {
    Sleep(100 + (number >> 8) % 200);
  } else if (number % 4 == 0) {
    sched_yield();
  }
}

struct StreamThread::Operation {
  enum class Kind { kRun, kPoint, kWait, kEnd };
  Kind kind;
  Run run = nullptr;
  Completion* point = nullptr;
  std::atomic<Operation*> next = nullptr;
};

// A list whose first operation is over, with a count of those to come.
struct StreamThread::Queue {
  Queue(DeviceState& of, uint64_t seed)
      : device(of), delays(seed), last(new Operation{Operation::Kind::kEnd}) {
    first = last;
    sem_init(&count, 0, 0);
  }
  ~Queue() { sem_destroy(&count); }

  DeviceState& device;
  Delays delays;     // the thread's
  Operation* first;  // the thread's
  Operation* last;   // that of Push()
  sem_t count;
};

StreamThread::StreamThread(DeviceState& device, uint64_t seed)
    : queue_(new Queue(device, seed)) {
  std::thread([queue = queue_] { Loop(queue); }).detach();
}

StreamThread::~StreamThread() { Append(new Operation{Operation::Kind::kEnd}); }

void StreamThread::Append(Operation* operation) {
  Operation* before = std::exchange(queue_->last, operation);
  before->next.store(operation, std::memory_order_release);
  sem_post(&queue_->count);
}

void StreamThread::Push(Run run) {
  Append(new Operation{Operation::Kind::kRun, std::move(run)});
}

Completion* StreamThread::PushPoint() {
  Completion* point = Completion::Make();
  Append(new Operation{Operation::Kind::kPoint, nullptr, point});
  return point;
}

void StreamThread::PushWait(Completion* point) {
  Append(new Operation{Operation::Kind::kWait, nullptr, point});
}

void StreamThread::Loop(Queue* queue) {
  for (;;) {
    while (sem_wait(&queue->count) != 0) continue;
    Operation* operation = queue->first->next.load(std::memory_order_acquire);
    delete std::exchange(queue->first, operation);
    switch (operation->kind) {
      case Operation::Kind::kRun:
        if (queue->device.lost.load(std::memory_order_relaxed) == 0) {
          queue->delays.Wait();
          operation->run(queue->delays);
        }
        operation->run = nullptr;
        break;
      case Operation::Kind::kPoint:
        operation->point->Set();
        break;
      case Operation::Kind::kWait:
        operation->point->Wait();
        break;
      case Operation::Kind::kEnd:
        delete operation;
        delete queue;
        return;
    }
  }
}

}  // namespace lockstep::cuda_on_cpu
