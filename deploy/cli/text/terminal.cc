#include "deploy/cli/text/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

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

// Opens the output of `fd` once more, so that only this process's writes do not
// wait: O_NONBLOCK on `fd` itself would hold for all that share it, such as the
// shell. Returns -1 for a file, which never blocks, and for what cannot be
// opened again, such as a socket.
int OpenWithoutWaits(int fd) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) return -1;
  if (!S_ISCHR(info.st_mode) && !S_ISFIFO(info.st_mode)) return -1;
  return open(absl::StrCat("/proc/self/fd/", fd).c_str(),
              O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

// An output that has failed counts as writable: the write tells the error.
bool IsWritable(int fd) {
  pollfd out = {fd, POLLOUT, 0};
  return poll(&out, 1, 0) != 0;
}

}  // namespace

Terminal::Terminal(int fd, const char* no_color, const char* term)
    : fd_(fd),
      terminal_(isatty(fd) == 1),
      live_(terminal_ && IsCapable(term)),
      colour_(live_ && !IsSet(no_color)) {}

Terminal::~Terminal() {
  if (own_fd_ >= 0) close(own_fd_);
}

void Terminal::NeverWait() {
  // poll() says nothing about the descriptor -1, on which each write fails at
  // once.
  if (never_waits_ || fd_ < 0) return;
  never_waits_ = true;
  own_fd_ = OpenWithoutWaits(fd_);
}

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
  if (never_waits_) {
    // A live line that cannot be drawn now is out of date later.
    if (!Flush() || !IsWritable(fd_)) return;
    begun_ = absl::StrCat(kEraseLine, line);
    Flush();
  } else {
    Write(absl::StrCat(kEraseLine, line));
  }
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

// Keeps whole lines apart, so that none is dropped in part.
void Terminal::Keep(absl::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t size = end == absl::string_view::npos ? text.size() : end + 1;
    lines_.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
    if (lines_.size() <= kMostLines) continue;
    lines_.pop_front();
    ++dropped_;
  }
}

bool Terminal::Flush() {
  while (WriteBegun()) {
    if (dropped_ > 0) {
      begun_ = absl::StrCat("... ", dropped_,
                            " lines are missing, because the output was "
                            "blocked\n");
      dropped_ = 0;
    } else if (!lines_.empty()) {
      begun_ = std::move(lines_.front());
      lines_.pop_front();
    } else {
      return true;
    }
  }
  return false;
}

// Returns true if all of `begun_` is written, or cannot be.
bool Terminal::WriteBegun() {
  const int fd = own_fd_ >= 0 ? own_fd_ : fd_;
  while (!begun_.empty()) {
    if (!IsWritable(fd)) return false;
    // A writable pipe takes this much without a wait.
    const ssize_t written =
        write(fd, begun_.data(), std::min<size_t>(begun_.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return false;
    if (written <= 0) {
      if (error_ == 0) error_ = errno;
      begun_.clear();
      return true;
    }
    begun_.erase(0, static_cast<size_t>(written));
  }
  return true;
}

void Terminal::Write(absl::string_view text) {
  if (never_waits_) {
    Keep(text);
    Flush();
    return;
  }
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
