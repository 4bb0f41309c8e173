#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_FIBER_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_FIBER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <functional>
#include <memory>

namespace lockstep::simulation {

// Fiber runs a function that waits, such as a training loop, beside others in
// one thread. It has a stack of its own and goes on only in Resume().
//
// Threads: all calls come from the thread that made it.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();  // kills first
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Goes on until the next Pause() or the end.
  void Resume();

  // In the fiber: waits for Resume(). Where the fiber has been killed it does
  // not return: an exception unwinds the body, which must not catch it.
  void Pause();

  // Ends the body where it waits, as SIGKILL would, but for destructors.
  void Kill();

  bool done() const { return done_; }

 private:
  struct Killed {};
  class Sanitizer;
  // The place at which a stack was left.
  struct Place {
    ucontext_t context;  // if the stack has not begun; for sanitizers, always
    jmp_buf jump;
  };
  static void Switch(Place& from, Place& to, bool to_begins);
  static void Main(unsigned high, unsigned low);

  std::function<void()> body_;
  std::unique_ptr<char[]> stack_;
  std::unique_ptr<Sanitizer> sanitizer_;
  Place self_;
  Place resumer_;
  bool begun_ = false;
  bool killed_ = false;
  bool done_ = false;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_FIBER_H_
