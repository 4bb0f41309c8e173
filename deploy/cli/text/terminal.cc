#include "deploy/cli/text/terminal.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace lockstep::cli {
namespace {

constexpr size_t kUsualColumns = 80;
constexpr size_t kLeastColumns = 20;
// Back to the first column, and erased to the end of the line.
constexpr char kEraseLine[] = "\r\x1b[K";

// An empty NO_COLOR counts as unset, by its convention.
bool IsSet(const char* variable) {
  return variable != nullptr && *variable != '\0';
}

bool IsCapable(const char* term) {
  return IsSet(term) && absl::string_view(term) != "dumb";
}

}  // namespace

Terminal::Terminal(int fd, const char* no_color, const char* term)
    : fd_(fd),
      terminal_(isatty(fd) == 1),
      live_(terminal_ && IsCapable(term)),
      colour_(live_ && !IsSet(no_color)) {}

size_t Terminal::Columns() const {
  if (!terminal_) return kUnlimited;
  winsize size = {};
  // Some terminals, such as serial lines, report a width of 0.
  if (ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_col < kLeastColumns) {
    return kUsualColumns;
  }
  return size.ws_col;
}

void Terminal::Print(absl::string_view text) {
  ClearLive();
  Write(text);
}

void Terminal::ShowLive(absl::string_view line) {
  if (!live_) return;
  Write(absl::StrCat(kEraseLine, line));
  shown_ = true;
}

void Terminal::Clear() {
  // The cursor moves to the upper left corner first, since erasing leaves it in
  // place.
  if (live_) Write("\x1b[H\x1b[2J");
}

void Terminal::ClearLive() {
  if (shown_) Write(kEraseLine);
  shown_ = false;
}

void Terminal::Write(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd_, text.data(), text.size());
    // A signal may come before the first byte is written, and a pipe or a
    // terminal may take a part only.
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (error_ == 0) error_ = errno;
      return;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace lockstep::cli
