#ifndef LOCKSTEP_PYTHON_NATIVE_UNLOCKED_H_
#define LOCKSTEP_PYTHON_NATIVE_UNLOCKED_H_

#include <Python.h>

namespace lockstep::worker {

// While it lives, this thread does without the interpreter's lock, which it
// must have before.
//
// Python ends a thread that asks for the lock while the interpreter ends, by an
// exception that no destructor lets through: the process would abort. So a
// thread that comes back when WaitForTheEnd() was called stays here for ever.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* const state_;
};

// Must be called with the lock, by the thread that ends the interpreter, before
// it does: from then on no other thread asks for the lock in ~Unlocked().
void WaitForTheEnd();

}  // namespace lockstep::worker

#endif  // LOCKSTEP_PYTHON_NATIVE_UNLOCKED_H_
