#ifndef LOCKSTEP_SERVER_STATE_FILE_FILL_PROGRESS_H_
#define LOCKSTEP_SERVER_STATE_FILE_FILL_PROGRESS_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

namespace lockstep::server {

// FillProgress is how far the making of a state file is: its memory, and then
// the initial values in it. That may take minutes, so a chief that waits can
// read it, and a newer chief can cancel it.
//
// Threads: safe to share.
// Units:   bytes.
class FillProgress {
 public:
  // There is so much more to be done.
  void Expect(uint64_t bytes) { total_ += bytes; }
  // So much more has been done.
  //
  //   kCancelled  it is not wanted any more
  absl::Status Advance(uint64_t bytes) {
    done_ += bytes;
    if (!stopped_) return absl::OkStatus();
    return absl::CancelledError("the server's variables are not wanted now");
  }
  void Stop() { stopped_ = true; }

  uint64_t done() const { return done_; }
  uint64_t total() const { return total_; }

 private:
  std::atomic<uint64_t> done_ = 0;
  std::atomic<uint64_t> total_ = 0;
  std::atomic<bool> stopped_ = false;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_FILE_FILL_PROGRESS_H_
