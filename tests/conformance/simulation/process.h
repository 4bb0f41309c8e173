#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_PROCESS_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_PROCESS_H_

namespace lockstep::simulation {

// A process of the job. It ends when it is destroyed, as by SIGKILL, or by
// itself.
class Process {
 public:
  enum class State {
    kRuns,
    kExited,
    kRefused,  // for good; not again before an operator mends the cause
    kRestartMe,
    kChiefIsGone,  // has waited for as long as max_wait; restart me
  };

  virtual ~Process() = default;

  int number() const { return number_; }
  State state() const { return state_; }

 protected:
  void Exit(State state) {
    if (state_ == State::kRuns) state_ = state;
  }
  int number_ = -1;  // in the world

 private:
  State state_ = State::kRuns;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_PROCESS_H_
