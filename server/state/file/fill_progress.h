#ifndef LOCKSTEP_SERVER_STATE_FILE_FILL_PROGRESS_H_
#define LOCKSTEP_SERVER_STATE_FILE_FILL_PROGRESS_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

namespace lockstep::server {

// FillProgress counts the bytes of a state file that is being made: first its
// memory, then the initial values in it. That may take minutes, so a waiting
// chief can read the progress, and a newer chief can cancel the work.
//
// Threads: safe to share.
// Units:   bytes.
class FillProgress {
 public:
  // Adds to the total.
  void Expect(uint64_t bytes) { total_ += bytes; }
  // Adds to the bytes that are done.
  //
  //   kCancelled  Stop() was called: the caller must give up
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
