#include "python/native/unlocked.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace lockstep::worker {
namespace {

using std::chrono::milliseconds;

// Atomic, not guarded: a mutex could be taken for ever in a forked child.
std::atomic<bool> ends{false};
std::atomic<std::thread::id> ends_in{};  // the thread that ends the interpreter
std::atomic<int> asking{0};              // threads that ask for the lock
const pid_t process = getpid();

}  // namespace

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {}

Unlocked::~Unlocked() {
  // Counted before it looks: WaitForTheEnd() sees it, or it sees the end.
  ++asking;
  if (ends && std::this_thread::get_id() != ends_in.load()) {
    --asking;
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  PyEval_RestoreThread(state_);
  --asking;
}

void WaitForTheEnd() {
  ends_in = std::this_thread::get_id();
  ends = true;
  // A forked child has none of the threads that it counts.
  if (process != getpid()) return;
  PyThreadState* const state = PyEval_SaveThread();
  while (asking > 0) std::this_thread::sleep_for(milliseconds(1));
  PyEval_RestoreThread(state);
}

}  // namespace lockstep::worker
