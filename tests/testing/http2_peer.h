#ifndef LOCKSTEP_TESTS_TESTING_HTTP2_PEER_H_
#define LOCKSTEP_TESTS_TESTING_HTTP2_PEER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/raw_socket.h"

namespace lockstep::testing {

// Http2Peer implements as much HTTP/2 as a gRPC client needs, so that it can do
// things that gRPC's own client cannot: leave a message unfinished, or unread.
// All calls use one connection. It reads, and answers pings, only within its
// methods, until AnswerInBackground().
//
// Threads: not thread-safe.
class Http2Peer {
 public:
  static constexpr uint32_t kLargestWindow = 0x7fffffff;

  // Connects to 127.0.0.1 and sends the preface. `window` is the number of
  // bytes of each answer that the server may send; for all answers together it
  // is the largest number of HTTP/2.
  explicit Http2Peer(int port, uint32_t window = 65535);
  ~Http2Peer();
  Http2Peer(const Http2Peer&) = delete;
  Http2Peer& operator=(const Http2Peer&) = delete;

  // Opens a call, e.g. of "/lockstep.v1.CoordinatorService/Leave", and returns
  // its stream. `more` follows the headers of a call; at most 16 KiB in all.
  using Headers = std::vector<std::pair<std::string, std::string>>;
  uint32_t Open(const std::string& method, const Headers& more = {});

  // Sends the start of a message whose length field is `size` bytes.
  bool BeginMessage(uint32_t stream, uint32_t size);

  // Sends `bytes` of a message, within the server's windows. False if the
  // server ends the call or the connection, or accepts nothing for `millis`.
  bool SendBytes(uint32_t stream, size_t bytes, int millis = 5'000);

  // Sends a whole message, the only one of its call.
  bool SendMessage(uint32_t stream, const std::string& message);

  // True if the server ends the call within `millis`.
  bool EndsWithin(uint32_t stream, int millis);

  // Sends the first `bytes` bytes of a header that never ends, in CONTINUATION
  // frames. Returns its stream.
  uint32_t BeginHeader(size_t bytes);

  // From now on a thread reads, and answers pings and settings. Afterwards only
  // the next three methods may be called.
  void AnswerInBackground();
  // Frames that the server has sent; `closed` when the connection has ended.
  int pings() const { return pings_; }
  int ended_calls() const { return ended_calls_; }
  bool closed() const { return closed_; }

 private:
  bool SendFrame(uint8_t type, uint8_t flags, uint32_t stream,
                 const std::string& payload, int millis = 5'000);
  // Processes the received frames: windows, settings, pings, ends. Waits at
  // most `millis` for one. False if the connection or `stream` has ended.
  bool ReadFrames(uint32_t stream, int millis);
  bool Understand(uint8_t type, uint8_t flags, uint32_t of,
                  const std::string& payload, uint32_t stream);

  RawSocket socket_;
  std::string incoming_;
  uint32_t next_stream_ = 1;
  int64_t connection_window_ = 65535;
  int64_t stream_window_ = 65535;  // window of the newest call
  int64_t initial_window_ = 65535;
  std::set<uint32_t> ended_streams_;

  std::atomic<int> pings_ = 0;
  std::atomic<int> ended_calls_ = 0;
  std::atomic<bool> closed_ = false;
  std::atomic<bool> quit_ = false;
  std::thread reader_;  // last: it uses the members above
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_HTTP2_PEER_H_
