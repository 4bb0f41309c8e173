#ifndef LOCKSTEP_DEPLOY_CLI_TEXT_TERMINAL_H_
#define LOCKSTEP_DEPLOY_CLI_TEXT_TERMINAL_H_

#include <cstddef>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::cli {

// Terminal is the output of a command: text, and below it, on a real terminal,
// one live line that is redrawn. Output that cannot be written is dropped.
//
// Output may be blocked: a user has pressed Ctrl-S, a connection stands still,
// or the reader of a pipe does not read. Then calls wait, or, after
// NeverWait(), lines wait in this object, which drops the oldest if they are
// too many.
//
// Threads: not thread-safe.
// Borrows: the file descriptor.
class Terminal {
 public:
  // `no_color` and `term` are the variables NO_COLOR and TERM, null if unset.
  Terminal(int fd, const char* no_color, const char* term);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

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

  // From now on no call waits. The caller must call Flush() now and then.
  static constexpr size_t kMostLines = 1000;  // that wait
  void NeverWait();

  // Writes lines that wait, as far as the output takes them. Returns true if
  // none is left.
  bool Flush();

  // Why the first text that was dropped could not be written, an errno; 0: all
  // was written.
  int error() const { return error_; }

 private:
  void Write(absl::string_view text);
  void Keep(absl::string_view text);
  bool WriteBegun();

  const int fd_;
  const bool terminal_;
  const bool live_;
  const bool colour_;
  bool shown_ = false;
  int error_ = 0;
  bool never_waits_ = false;
  int own_fd_ = -1;    // the same output without waits; -1: there is none
  std::string begun_;  // the rest of a line, or of a live line
  std::deque<std::string> lines_;  // that follow it
  size_t dropped_ = 0;             // lines before these
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TEXT_TERMINAL_H_
