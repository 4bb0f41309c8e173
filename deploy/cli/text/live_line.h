#ifndef LOCKSTEP_DEPLOY_CLI_TEXT_LIVE_LINE_H_
#define LOCKSTEP_DEPLOY_CLI_TEXT_LIVE_LINE_H_

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// LiveLine shows how far the work of a command is on the terminal's live line,
// which it removes in the end. Nothing else may be printed meanwhile.
//
// Threads: not thread-safe.
// Borrows: the terminal and the clock.
class LiveLine {
 public:
  LiveLine(Terminal& terminal, const Clock& clock)
      : terminal_(terminal), clock_(clock) {}
  ~LiveLine() { terminal_.ClearLive(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // Draws what `text` returns, cut to the window. Does nothing where no line
  // can be drawn, or the last one was drawn within the last tenth of a second.
  void Draw(const std::function<std::string()>& text);
  // The next Draw() draws, however soon it comes: the work is another one.
  void Renew() { drawn_ = absl::InfinitePast(); }

 private:
  Terminal& terminal_;
  const Clock& clock_;
  absl::Time drawn_ = absl::InfinitePast();
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TEXT_LIVE_LINE_H_
