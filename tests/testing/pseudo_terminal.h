#ifndef LOCKSTEP_TESTS_TESTING_PSEUDO_TERMINAL_H_
#define LOCKSTEP_TESTS_TESTING_PSEUDO_TERMINAL_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep::testing {

// Returns all that can be read from a pipe or a terminal without waiting. Reads
// of the descriptor do not wait from then on.
std::string ReadSoFar(int fd);

// PseudoTerminal is a terminal without a screen: code under test writes to its
// inside, and the test reads the text from its outside. Programs that the test
// starts inherit neither end.
//
// Errors: if the machine has no terminal left the test fails, and inside() is
//         no descriptor.
class PseudoTerminal {
 public:
  explicit PseudoTerminal(int columns);
  // Closes both ends.
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  // The descriptor for the code under test; open as long as this object.
  int inside() const { return inside_; }

  // Changes the width of the window; 0 means that it is unknown.
  void Resize(int columns) const;

  // Returns the text that was written since the last call; does not wait.
  std::string Shown() const;

 private:
  int outside_ = -1;
  int inside_ = -1;
};

// TerminalProgram is a program that runs on a terminal of its own, as a shell
// in the foreground starts it. It dies with the test.
//
// Errors: if it cannot be started the test fails, and ReadMore() has no text.
class TerminalProgram {
 public:
  // `args` go after the program's name; the environment is that of the test,
  // with TERM=xterm.
  TerminalProgram(const std::string& program,
                  const std::vector<std::string>& args, int columns);
  // Kills the program if it still runs.
  ~TerminalProgram();
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;

  // Waits for more text; absent when the program has closed the terminal.
  std::optional<std::string> ReadMore() const;

  // Types on the keyboard: "\x03" is Ctrl-C.
  void Type(const std::string& keys) const;

  // Waits for the end, and returns its exit code; of a program that a signal
  // has killed, the negative number of the signal.
  int Wait();

 private:
  int outside_ = -1;
  pid_t pid_ = -1;  // -1: not started, or waited for
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_PSEUDO_TERMINAL_H_
