#ifndef LOCKSTEP_SERVER_STATE_FILE_WORKER_FENCES_H_
#define LOCKSTEP_SERVER_STATE_FILE_WORKER_FENCES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep::server {

// WorkerFences records the incarnations of workers that must be refused: those
// that were declared dead, and those that no chief has admitted since the job
// went back, because such a worker would add gradients of lost steps. It also
// records which workers have used up their data.
//
// They must outlive the process: a chief that was started again does not know
// which workers its predecessor fenced off. In a state file each of the first
// NumPlaces() workers has a place; the fences of other workers, and all fences
// if there is no file, end with the process.
//
// Threads: not thread-safe.
// Borrows: the memory.
class WorkerFences {
 public:
  // The number of workers that have a place in `bytes` bytes.
  static constexpr size_t NumPlaces(size_t bytes) {
    return bytes / sizeof(int64_t) < 1
               ? 0
               : (bytes / sizeof(int64_t) - 1) / kWordsPerWorker;
  }

  // Keeps the fences in `memory` too from now on, which must be at a multiple
  // of 8 bytes; empty for none. Fences that an earlier process left there count
  // as well; zeros hold none.
  void KeepIn(absl::Span<std::byte> memory);

  // Refuses incarnations up to `incarnation` from now on.
  void Expire(int worker, uint64_t incarnation);
  // Refuses incarnations above `above`, until Expire() names one that is above
  // it, too.
  void ShutOut(int worker, uint64_t above);
  // Records that the worker has used up its data, for the next chief.
  void EndInput(int worker);
  // Drops the records of EndInput() for all workers.
  void ForgetEndedInput();

  // True if ShutOut() refuses `incarnation`.
  bool IsShutOut(int worker, uint64_t incarnation) const {
    const Fence fence = Find(worker);
    return fence.shut_out.has_value() && incarnation > *fence.shut_out;
  }
  // The standings of workers that have one, ascending.
  std::vector<WorkerStanding> Standings() const;
  // The newest incarnation that Expire() has refused; 0: none.
  uint64_t Expired(int worker) const { return Find(worker).expired; }
  bool IsExpired(int worker, uint64_t incarnation) const {
    return incarnation <= Find(worker).expired;
  }

 private:
  static constexpr size_t kWordsPerWorker = 2;  // expired, standing

  struct Fence {
    uint64_t expired = 0;
    std::optional<uint64_t> shut_out{};  // incarnations above this one
    bool input_ended = false;
  };
  Fence Find(int worker) const;
  int64_t* Place(size_t worker) const {
    return words_.data() + 1 + worker * kWordsPerWorker;
  }
  void Keep(int worker, const Fence& fence);

  std::map<int, Fence> fences_;
  // The number of workers that may have fences, then their places; or empty.
  // Places beyond that number are never touched, which would allocate the
  // file's pages.
  absl::Span<int64_t> words_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_FILE_WORKER_FENCES_H_
