#include "tests/testing/http2_client.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace lockstep::testing {
namespace {

// Types of frames.
constexpr uint32_t kData = 0;
constexpr uint32_t kHeaders = 1;
constexpr uint32_t kReset = 3;
constexpr uint32_t kSettings = 4;
constexpr uint32_t kPing = 6;
constexpr uint32_t kWindowUpdate = 8;

// Flags.
constexpr uint32_t kAck = 1;  // of a setting or a ping
constexpr uint32_t kEndStream = 1;
constexpr uint32_t kEndHeaders = 4;

constexpr size_t kFrameHeader = 9;

// Fields of HTTP/2, most significant byte first.
std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) {
    text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  return text;
}

uint32_t ReadBigEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | (byte & 0xff);
  return value;
}

std::string Frame(uint32_t type, uint32_t flags, uint32_t stream,
                  absl::string_view payload) {
  return absl::StrCat(BigEndian(static_cast<uint32_t>(payload.size()), 3),
                      BigEndian(type, 1), BigEndian(flags, 1),
                      BigEndian(stream, 4), payload);
}

// A header that no table has.
std::string Header(absl::string_view name, absl::string_view value) {
  return absl::StrCat(absl::string_view("\0", 1),
                      BigEndian(static_cast<uint32_t>(name.size()), 1), name,
                      BigEndian(static_cast<uint32_t>(value.size()), 1), value);
}

// `window` is that of each call.
std::string Preface(uint32_t window) {
  constexpr uint32_t kInitialWindowSize = 4;
  constexpr uint32_t kLargest = 0x7fffffff;
  constexpr uint32_t kDefault = 65535;
  return absl::StrCat(
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      Frame(kSettings, 0, 0,
            BigEndian(kInitialWindowSize, 2) + BigEndian(window, 4)),
      Frame(kWindowUpdate, 0, 0, BigEndian(kLargest - kDefault, 4)));
}

}  // namespace

Http2Client::Http2Client(int port, Reads reads)
    : reads_(reads), fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  if (reads_ == Reads::kNothing) {
    const int small = 4096;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
  }
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address),
                    sizeof(address)),
            0);
  Send(Preface(reads_ == Reads::kNothing ? 0x7fffffff : 0));
  if (reads_ == Reads::kOnlyControl) {
    reader_ = std::thread([this] { ReadFrames(); });
  }
}

Http2Client::~Http2Client() {
  shutdown(fd_, SHUT_RDWR);
  if (reader_.joinable()) reader_.join();
  close(fd_);
}

void Http2Client::Call(const std::string& path, const std::string& message) {
  const std::string headers =
      Header(":method", "POST") + Header(":scheme", "http") +
      Header(":path", path) + Header(":authority", "localhost") +
      Header("content-type", "application/grpc") + Header("te", "trailers");
  const std::string body = absl::StrCat(
      absl::string_view("\0", 1),
      BigEndian(static_cast<uint32_t>(message.size()), 4), message);
  Send(Frame(kHeaders, kEndHeaders, next_stream_, headers) +
       Frame(kData, kEndStream, next_stream_, body));
  next_stream_ += 2;
}

void Http2Client::Send(const std::string& bytes) {
  // The connection may be gone, which closed() tells.
  (void)send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

bool Http2Client::Receive(size_t size, std::string& bytes) {
  bytes.resize(size);
  return size == 0 || recv(fd_, bytes.data(), size, MSG_WAITALL) ==
                          static_cast<ssize_t>(size);
}

void Http2Client::ReadFrames() {
  while (ReadFrame()) {
  }
  closed_ = true;
}

bool Http2Client::ReadFrame() {
  std::string header;
  std::string payload;
  if (!Receive(kFrameHeader, header)) return false;
  const absl::string_view view = header;
  if (!Receive(ReadBigEndian(view.substr(0, 3)), payload)) return false;
  const uint32_t type = ReadBigEndian(view.substr(3, 1));
  const uint32_t flags = ReadBigEndian(view.substr(4, 1));
  if (type == kSettings && (flags & kAck) == 0) {
    Send(Frame(kSettings, kAck, 0, ""));
  } else if (type == kPing && (flags & kAck) == 0) {
    ++pings_;
    Send(Frame(kPing, kAck, 0, payload));
  } else if (type == kReset ||
             (type == kHeaders && (flags & kEndStream) != 0)) {
    ended_streams_.insert(ReadBigEndian(view.substr(5, 4)));
    ended_calls_ = static_cast<int>(ended_streams_.size());
  }
  return true;
}

}  // namespace lockstep::testing
