#include "common/observe/request_reader.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

using std::chrono::steady_clock;

constexpr size_t kLongestRequest = 8 << 10;
constexpr std::chrono::seconds kReadTime(1);

enum class Arrived { kComplete, kPartial, kBroken };

// Appends what has arrived to the text.
Arrived ReadMore(int socket, std::string& text) {
  char buffer[1024];
  const ssize_t count = recv(socket, buffer, sizeof(buffer), 0);
  // EAGAIN: a wakeup without data.
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return Arrived::kPartial;
  }
  if (count <= 0) return Arrived::kBroken;
  text.append(buffer, static_cast<size_t>(count));
  if (absl::StrContains(text, "\r\n\r\n")) return Arrived::kComplete;
  return text.size() > kLongestRequest ? Arrived::kBroken : Arrived::kPartial;
}

}  // namespace

void CloseConnection(int socket) {
  // shutdown() first: TcpListener counts the connection until both directions
  // are shut down, and holds a duplicate of the socket.
  shutdown(socket, SHUT_RDWR);
  close(socket);
}

absl::StatusOr<std::unique_ptr<RequestReader>> RequestReader::Make() {
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake >= 0) return std::unique_ptr<RequestReader>(new RequestReader(wake));
  return absl::UnavailableError(
      absl::StrCat("cannot read requests: eventfd: ", std::strerror(errno),
                   "; raise the limit of open files (ulimit -n, LimitNOFILE)"));
}

RequestReader::~RequestReader() {
  Stop();
  close(wake_);
}

void RequestReader::Start(Take take) {
  thread_ = std::thread([this, take = std::move(take)] { Run(take); });
}

void RequestReader::Add(int socket) {
  MutexLock lock(mutex_);
  added_.push_back(socket);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
}

void RequestReader::Stop() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    quit_ = true;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
  }
  thread_.join();
  for (const Unread& unread : unread_) CloseConnection(unread.socket);
  unread_.clear();
  MutexLock lock(mutex_);
  for (const int socket : added_) CloseConnection(socket);
  added_.clear();
}

std::vector<bool> RequestReader::Await() const {
  std::vector<pollfd> polled = {{wake_, POLLIN, 0}};
  for (const Unread& unread : unread_) {
    polled.push_back({unread.socket, POLLIN, 0});
  }
  int millis = -1;
  if (unread_.size() > kMostUnread) {
    millis = 0;  // some of them are closed, unless their request is here
  } else if (!unread_.empty()) {
    // The oldest is late first.
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        unread_.front().until - steady_clock::now());
    // Rounded up, so that poll() does not return before the deadline.
    millis = static_cast<int>(std::max<int64_t>(left.count(), -1)) + 1;
  }
  const int count = poll(polled.data(), polled.size(), millis);
  std::vector<bool> ready(unread_.size(), false);
  for (size_t i = 0; count > 0 && i < ready.size(); ++i) {
    ready[i] = polled[i + 1].revents != 0;
  }
  return ready;
}

bool RequestReader::TakeAdded() {
  MutexLock lock(mutex_);
  uint64_t wakes = 0;
  [[maybe_unused]] const ssize_t count = read(wake_, &wakes, sizeof(wakes));
  for (const int socket : added_) {
    unread_.push_back({socket, steady_clock::now() + kReadTime});
  }
  added_.clear();
  return !quit_;
}

void RequestReader::Run(const Take& take) {
  while (TakeAdded()) {
    const std::vector<bool> ready = Await();
    const Time now = steady_clock::now();
    std::deque<Unread> still;
    for (size_t i = 0; i < ready.size(); ++i) {
      Unread& unread = unread_[i];
      const Arrived arrived =
          ready[i] ? ReadMore(unread.socket, unread.text) : Arrived::kPartial;
      if (arrived == Arrived::kComplete) {
        take(unread.socket, std::move(unread.text));
      } else if (arrived == Arrived::kBroken || now >= unread.until) {
        CloseConnection(unread.socket);
      } else {
        still.push_back(std::move(unread));
      }
    }
    unread_ = std::move(still);
    // After the reading: requests that have arrived are not lost to a burst of
    // silent connections.
    while (unread_.size() > kMostUnread) {
      CloseConnection(unread_.front().socket);
      unread_.pop_front();
    }
  }
}

}  // namespace lockstep
