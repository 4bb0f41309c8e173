#include "tests/testing/http2_peer.h"

#include <algorithm>
#include <chrono>

namespace lockstep::testing {
namespace {

enum Frame : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
constexpr uint8_t kAck = 1;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;
constexpr uint16_t kInitialWindow = 4;
constexpr uint32_t kDefaultWindow = 65535;
constexpr size_t kFrameHeader = 9;
constexpr size_t kLargestFrame = 16384;

std::string BigEndian(uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
  return out;
}

uint32_t Number(const std::string& bytes, size_t at, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) {
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  }
  return value;
}

// HPACK: the length of a string that is not compressed.
std::string Length(size_t size) {
  if (size < 127) return {static_cast<char>(size)};
  std::string out(1, 127);
  for (size_t rest = size - 127;; rest >>= 7) {
    out.push_back(static_cast<char>(rest < 128 ? rest : (rest & 127) | 128));
    if (rest < 128) return out;
  }
}

// HPACK: a literal that is not indexed, with its own name.
std::string Literal(const std::string& name, const std::string& value) {
  return std::string(1, 0) + Length(name.size()) + name + Length(value.size()) +
         value;
}

std::string CallHeaders(const std::string& method) {
  return Literal(":method", "POST") + Literal(":scheme", "http") +
         Literal(":path", method) + Literal(":authority", "localhost") +
         Literal("content-type", "application/grpc") +
         Literal("te", "trailers");
}

}  // namespace

Http2Peer::Http2Peer(int port, uint32_t window) : socket_(port) {
  socket_.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  SendFrame(kSettings, 0, 0,
            BigEndian(kInitialWindow, 2) + BigEndian(window, 4));
  SendFrame(kWindowUpdate, 0, 0, BigEndian(kLargestWindow - kDefaultWindow, 4));
  // Comes at once, but after a handshake where there is a tunnel, which takes
  // long on a busy machine.
  ReadFrames(0, 60'000);
}

Http2Peer::~Http2Peer() {
  quit_ = true;
  if (reader_.joinable()) reader_.join();
}

void Http2Peer::AnswerInBackground() {
  reader_ = std::thread([this] {
    while (!quit_) {
      if (ReadFrames(0, 100)) continue;
      closed_ = true;
      return;
    }
  });
}

uint32_t Http2Peer::Open(const std::string& method, const Headers& more) {
  const uint32_t stream = next_stream_;
  next_stream_ += 2;
  stream_window_ = initial_window_;
  std::string headers = CallHeaders(method);
  for (const auto& [name, value] : more) headers += Literal(name, value);
  SendFrame(kHeaders, kEndHeaders, stream, headers);
  return stream;
}

bool Http2Peer::BeginMessage(uint32_t stream, uint32_t size) {
  connection_window_ -= 5;
  stream_window_ -= 5;
  return SendFrame(kData, 0, stream, std::string(1, 0) + BigEndian(size, 4));
}

bool Http2Peer::SendBytes(uint32_t stream, size_t bytes, int millis) {
  while (bytes > 0) {
    const int64_t window = std::min(connection_window_, stream_window_);
    if (!ReadFrames(stream, window > 0 ? 0 : millis)) return false;
    const int64_t now = std::min(connection_window_, stream_window_);
    if (now <= 0 && window <= 0) return false;
    const size_t piece = std::min(
        {bytes, kLargestFrame, static_cast<size_t>(std::max<int64_t>(now, 0))});
    if (piece == 0) continue;
    if (!SendFrame(kData, 0, stream, std::string(piece, 'x'), millis)) {
      return false;
    }
    connection_window_ -= static_cast<int64_t>(piece);
    stream_window_ -= static_cast<int64_t>(piece);
    bytes -= piece;
  }
  return true;
}

bool Http2Peer::SendMessage(uint32_t stream, const std::string& message) {
  const std::string framed =
      std::string(1, 0) + BigEndian(message.size(), 4) + message;
  connection_window_ -= static_cast<int64_t>(framed.size());
  stream_window_ -= static_cast<int64_t>(framed.size());
  for (size_t sent = 0; sent < framed.size(); sent += kLargestFrame) {
    const bool last = framed.size() - sent <= kLargestFrame;
    if (!ReadFrames(stream, 0) ||
        !SendFrame(kData, last ? kEndStream : 0, stream,
                   framed.substr(sent, kLargestFrame))) {
      return false;
    }
  }
  return true;
}

bool Http2Peer::EndsWithin(uint32_t stream, int millis) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(millis);
  while (std::chrono::steady_clock::now() < deadline) {
    if (!ReadFrames(stream, 50)) return true;
  }
  return false;
}

uint32_t Http2Peer::BeginHeader(size_t bytes) {
  const uint32_t stream = next_stream_;
  next_stream_ += 2;
  // The value is longer than what is sent of it.
  SendFrame(kHeaders, 0, stream,
            CallHeaders("/x/y") + std::string(1, 0) + Length(4) + "long" +
                Length(bytes + 127));
  for (size_t sent = 0; sent < bytes; sent += kLargestFrame) {
    SendFrame(kContinuation, 0, stream,
              std::string(std::min(kLargestFrame, bytes - sent), 'h'));
  }
  return stream;
}

bool Http2Peer::SendFrame(uint8_t type, uint8_t flags, uint32_t stream,
                          const std::string& payload, int millis) {
  return socket_.Send(BigEndian(payload.size(), 3) + BigEndian(type, 1) +
                          BigEndian(flags, 1) + BigEndian(stream, 4) + payload,
                      millis);
}

bool Http2Peer::ReadFrames(uint32_t stream, int millis) {
  bool waits = millis > 0;
  while (true) {
    while (incoming_.size() < kFrameHeader ||
           incoming_.size() < kFrameHeader + Number(incoming_, 0, 3)) {
      const std::string more = socket_.Receive(waits ? millis : 0);
      if (more.empty()) return !socket_.HasEnded();
      incoming_ += more;
      waits = false;
    }
    const size_t size = Number(incoming_, 0, 3);
    const auto type = static_cast<uint8_t>(incoming_[3]);
    const auto flags = static_cast<uint8_t>(incoming_[4]);
    const uint32_t of = Number(incoming_, 5, 4);
    const std::string payload = incoming_.substr(kFrameHeader, size);
    incoming_.erase(0, kFrameHeader + size);
    if (!Understand(type, flags, of, payload, stream)) return false;
  }
}

bool Http2Peer::Understand(uint8_t type, uint8_t flags, uint32_t of,
                           const std::string& payload, uint32_t stream) {
  if (type == kGoAway) return false;
  if (type == kReset || (type == kHeaders && (flags & kEndStream) != 0)) {
    ended_streams_.insert(of);
    ended_calls_ = static_cast<int>(ended_streams_.size());
    return of != stream;
  }
  if (type == kWindowUpdate) {
    (of == 0 ? connection_window_ : stream_window_) += Number(payload, 0, 4);
  }
  if (type == kPing && (flags & kAck) == 0) {
    ++pings_;
    return SendFrame(kPing, kAck, 0, payload);
  }
  if (type != kSettings || (flags & kAck) != 0) return true;
  for (size_t at = 0; at + 6 <= payload.size(); at += 6) {
    if (Number(payload, at, 2) != kInitialWindow) continue;
    const int64_t window = Number(payload, at + 2, 4);
    stream_window_ += window - initial_window_;
    initial_window_ = window;
  }
  return SendFrame(kSettings, kAck, 0, "");
}

}  // namespace lockstep::testing
