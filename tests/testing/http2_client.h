#ifndef LOCKSTEP_TESTS_TESTING_HTTP2_CLIENT_H_
#define LOCKSTEP_TESTS_TESTING_HTTP2_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>

namespace lockstep::testing {

// Http2Client is a connection over loopback that speaks as much HTTP/2 as it
// takes to make calls whose answers it does not read, as no gRPC client does.
// A connection that cannot be made fails the test.
//
// Threads: not safe to share.
class Http2Client {
 public:
  enum class Reads {
    kNothing,      // not from the socket either; windows are large
    kOnlyControl,  // answers pings and settings; the window of each call is 0
  };

  Http2Client(int port, Reads reads);
  ~Http2Client();
  Http2Client(const Http2Client&) = delete;
  Http2Client& operator=(const Http2Client&) = delete;

  // Begins a call and sends all of its one message.
  void Call(const std::string& path, const std::string& message);

  // Of kOnlyControl: what the server has sent so far.
  int pings() const { return pings_; }
  int ended_calls() const { return ended_calls_; }
  bool closed() const { return closed_; }

 private:
  void Send(const std::string& bytes);
  // Until the connection ends.
  void ReadFrames();
  bool ReadFrame();
  bool Receive(size_t size, std::string& bytes);

  const Reads reads_;
  const int fd_;
  uint32_t next_stream_ = 1;
  std::set<uint32_t> ended_streams_;  // for the reader alone
  std::atomic<int> pings_ = 0;
  std::atomic<int> ended_calls_ = 0;
  std::atomic<bool> closed_ = false;
  std::thread reader_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_HTTP2_CLIENT_H_
