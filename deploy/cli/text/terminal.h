#ifndef LOCKSTEP_DEPLOY_CLI_TEXT_TERMINAL_H_
#define LOCKSTEP_DEPLOY_CLI_TEXT_TERMINAL_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::cli {

// Terminal is the output of a command: text, and below it, on a real terminal,
// one live line that is redrawn. Output that cannot be written is dropped.
//
// Threads: not thread-safe.
// Borrows: the file descriptor.
class Terminal {
 public:
  // `no_color` and `term` are the variables NO_COLOR and TERM, null if unset.
  Terminal(int fd, const char* no_color, const char* term);

  // True if a line can be redrawn.
  bool live() const { return live_; }
  bool colour() const { return colour_; }

  // Returns the width of the window now; 80 if it has none. A file or a pipe
  // takes lines of any length: kUnlimited.
  static constexpr size_t kUnlimited = size_t{1} << 30;
  size_t Columns() const;

  // Prints whole lines above the live line.
  void Print(absl::string_view text);

  // Draws the live line, which must fit into Columns() - 1. Does nothing if not
  // live().
  void ShowLive(absl::string_view line);

  // Empties the window, if live().
  void Clear();

  // Removes the live line.
  void ClearLive();

  // Why the first text that was dropped could not be written, an errno; 0: all
  // was written.
  int error() const { return error_; }

 private:
  void Write(absl::string_view text);

  const int fd_;
  const bool terminal_;
  const bool live_;
  const bool colour_;
  bool shown_ = false;
  int error_ = 0;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TEXT_TERMINAL_H_
