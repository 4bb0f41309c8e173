#ifndef LOCKSTEP_WORKER_SESSION_HANDED_IN_H_
#define LOCKSTEP_WORKER_SESSION_HANDED_IN_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace lockstep::worker {

// HandedIn records the variables of a step whose values a program has taken and
// whose gradients it has handed in, and decides which gradients are sent: the
// last variable's first, whatever order the program computes in. Workers that
// send in different orders could wait for one another (see ReadyChunks).
//
// Threads: not thread-safe.
class HandedIn {
 public:
  // A gradient to be sent; `absent`: as absent.
  struct Gradient {
    size_t variable = 0;
    bool absent = false;
  };

  // A step begins.
  void Begin(size_t num_variables);

  size_t size() const { return ready_.size(); }
  bool has(size_t variable) const {
    return variable < ready_.size() && ready_[variable];
  }
  bool empty() const { return num_ready_ == 0; }
  bool is_taken(size_t variable) const {
    return variable < taken_.size() && taken_[variable];
  }

  // Records that the program has taken the value. `variable` must be below
  // size().
  void MarkTaken(size_t variable) { taken_[variable] = true; }
  // Records that the gradient is handed in; `absent`: the pass has none. Must
  // be called at most once for a variable, which must be below size().
  void Add(size_t variable, bool absent);
  // Returns the next gradient to be sent, each once; nullopt: none yet.
  std::optional<Gradient> NextToSend();

 private:
  std::vector<bool> ready_;
  std::vector<bool> absent_;  // valid if it is ready
  std::vector<bool> taken_;
  size_t num_ready_ = 0;
  // The gradients of variables from this one on have been sent.
  size_t unsent_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_HANDED_IN_H_
