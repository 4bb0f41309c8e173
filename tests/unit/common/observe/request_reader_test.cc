#include "common/observe/request_reader.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

constexpr char kRequest[] = "GET / HTTP/1.1\r\n\r\n";

// A connection to a reader.
class Connection {
 public:
  explicit Connection(RequestReader& reader) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    EXPECT_EQ(fcntl(ends_[1], F_SETFL, O_NONBLOCK), 0);
    reader.Add(ends_[1]);
  }
  ~Connection() { close(ends_[0]); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Send(const std::string& text) const {
    EXPECT_EQ(send(ends_[0], text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Waits until the reader closes it.
  void AwaitEnd() const {
    char byte = 0;
    EXPECT_LE(recv(ends_[0], &byte, 1, 0), 0);  // or was reset
  }

 private:
  int ends_[2] = {-1, -1};
};

class RequestReaderTest : public ::testing::Test {
 protected:
  RequestReaderTest() : reader_(*RequestReader::Make()) {
    reader_->Start([this](int socket, std::string text) {
      CloseConnection(socket);
      MutexLock lock(mutex_);
      texts_.push_back(std::move(text));
    });
  }
  // After the end of a connection whose request was passed on.
  std::vector<std::string> texts() {
    reader_->Stop();
    MutexLock lock(mutex_);
    return texts_;
  }

  Mutex mutex_;
  std::vector<std::string> texts_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<RequestReader> reader_;
};

TEST_F(RequestReaderTest, RequestThatComesInPiecesIsPassedOnWhole) {
  const Connection connection(*reader_);
  for (const char byte : std::string(kRequest)) {
    connection.Send(std::string(1, byte));
  }
  connection.AwaitEnd();

  EXPECT_THAT(texts(), ::testing::ElementsAre(kRequest));
}

TEST_F(RequestReaderTest, ConnectionWithoutARequestIsClosedAfterASecond) {
  const Connection silent(*reader_);
  const Connection slow(*reader_);
  slow.Send("GET / HT");

  silent.AwaitEnd();
  slow.AwaitEnd();

  EXPECT_THAT(texts(), ::testing::IsEmpty());
}

TEST_F(RequestReaderTest, TooLongARequestIsNotPassedOn) {
  const Connection connection(*reader_);
  connection.Send("GET /" + std::string(16 << 10, 'x'));
  connection.AwaitEnd();

  EXPECT_THAT(texts(), ::testing::IsEmpty());
}

TEST_F(RequestReaderTest, RequestIsReadBesideSilentConnections) {
  std::list<Connection> silent;
  for (int i = 0; i < 100; ++i) silent.emplace_back(*reader_);
  const Connection connection(*reader_);
  connection.Send(kRequest);
  connection.AwaitEnd();
  // The oldest make room.
  silent.front().AwaitEnd();

  EXPECT_THAT(texts(), ::testing::ElementsAre(kRequest));
}

TEST_F(RequestReaderTest, StopClosesWhatHasNotArrived) {
  const Connection connection(*reader_);
  reader_->Stop();

  connection.AwaitEnd();
}

}  // namespace
}  // namespace lockstep
