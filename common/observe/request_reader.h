#ifndef LOCKSTEP_COMMON_OBSERVE_REQUEST_READER_H_
#define LOCKSTEP_COMMON_OBSERVE_REQUEST_READER_H_

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"

namespace lockstep {

// Closes a connection of a TcpListener.
void CloseConnection(int socket);

// RequestReader reads HTTP requests up to the end of their headers, from many
// connections at once and in one thread, so that silent connections hold up no
// other. A connection whose request does not arrive within a second, or has
// more than 8 KiB, is closed. When more than kMostUnread connections lack their
// request, the oldest one is closed: a scraper or a probe sends its request at
// once.
//
// Threads: reads in a thread of its own; Add() and Stop() may be called in any.
// Owns:    the sockets that it has not passed on.
class RequestReader {
 public:
  // Takes ownership of a socket, with what has arrived: all headers, perhaps
  // with bytes of a body. Must not block.
  using Take = std::function<void(int socket, std::string request)>;

  static constexpr size_t kMostUnread = 16;

  //   kUnavailable  no descriptor is left
  static absl::StatusOr<std::unique_ptr<RequestReader>> Make();

  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Must be called once, before Add().
  void Start(Take take);

  // Takes ownership of a non-blocking socket.
  void Add(int socket) ABSL_LOCKS_EXCLUDED(mutex_);

  // When it returns, `take` is not running and will not run again.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Time = std::chrono::steady_clock::time_point;

  // A connection whose request has not arrived.
  struct Unread {
    int socket = -1;
    Time until;
    std::string text = {};
  };

  explicit RequestReader(int wake) : wake_(wake) {}

  void Run(const Take& take) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until a connection is readable, one is late, or Add() or Stop() has
  // been called. Returns the connections that are readable, by index.
  std::vector<bool> Await() const;
  // Takes over the sockets of Add(). Returns false after Stop().
  bool TakeAdded() ABSL_LOCKS_EXCLUDED(mutex_);

  const int wake_;  // an eventfd
  std::thread thread_;
  std::deque<Unread> unread_;  // of the thread, oldest first

  Mutex mutex_;
  std::vector<int> added_ ABSL_GUARDED_BY(mutex_);
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_REQUEST_READER_H_
