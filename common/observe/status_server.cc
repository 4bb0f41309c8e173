#include "common/observe/status_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/host_port.h"
#include "common/observe/peer_user.h"

namespace lockstep {
namespace {

using std::chrono::steady_clock;

// Enough for a scraper and some browsers. They bound the threads, descriptors
// and memory that peers can hold.
constexpr int kThreads = 4;
constexpr size_t kLongestQueue = 16;
constexpr ConnectionLimits kConnections = {32, 24};
// A slow peer holds a thread for so long at most.
constexpr std::chrono::seconds kWriteTime(2);

// Waits until the socket takes bytes. Returns false after `deadline`, or if the
// wait fails.
bool AwaitRoom(int socket, steady_clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - steady_clock::now());
    if (left.count() < 0) return false;
    pollfd ready = {socket, POLLOUT, 0};
    // Rounded up, so that poll() does not return before the deadline.
    const int count = poll(&ready, 1, static_cast<int>(left.count()) + 1);
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

void Write(int socket, const std::string& answer) {
  const auto deadline = steady_clock::now() + kWriteTime;
  size_t sent = 0;
  while (sent < answer.size() && AwaitRoom(socket, deadline)) {
    const ssize_t count =
        send(socket, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN) return;
    if (count > 0) sent += static_cast<size_t>(count);
  }
}

// A browser loads and runs nothing but the additions of StatusPage::policy.
constexpr char kHeaders[] =
    "Connection: close\r\n"
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";
constexpr char kMoreHeaders[] =
    "\r\nCross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n";

std::string Response(absl::string_view status, absl::string_view type,
                     absl::string_view body, absl::string_view policy = "") {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", type,
                      "\r\nContent-Length: ", body.size(), "\r\n", kHeaders,
                      policy, kMoreHeaders, "\r\n", body);
}

std::string Refusal(absl::string_view status, absl::string_view why) {
  return Response(status, "text/plain", absl::StrCat(why, "\n"));
}

}  // namespace

// A page with the body that it had last.
struct StatusServer::Served {
  explicit Served(const StatusPage& served) : page(served) {}

  const StatusPage& page;

  Mutex mutex;
  std::string body ABSL_GUARDED_BY(mutex);
  steady_clock::time_point until ABSL_GUARDED_BY(mutex) = {};

  std::string Response() ABSL_LOCKS_EXCLUDED(mutex) {
    // Held during body(): StatusPage promises one call at a time, and requests
    // that arrive meanwhile then share the result.
    MutexLock lock(mutex);
    if (steady_clock::now() >= until) {
      body = page.body();
      until = steady_clock::now() + absl::ToChronoNanoseconds(page.lasts);
    }
    return lockstep::Response("200 OK", page.type, body, page.policy);
  }
};

absl::StatusOr<std::unique_ptr<StatusServer>> StatusServer::Start(
    const std::string& address, Options options) {
  if (!ParseHostPort(address).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("status address \"", address,
                     "\": expected host:port with a port of 0 to 65535, as in "
                     "127.0.0.1:9100"));
  }
  auto listener = TcpListener::Listen(address, kConnections);
  if (!listener.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve the status: ", listener.status().message()));
  }
  auto reader = RequestReader::Make();
  if (!reader.ok()) return reader.status();
  return std::unique_ptr<StatusServer>(new StatusServer(
      *std::move(listener), *std::move(reader), std::move(options)));
}

StatusServer::StatusServer(std::unique_ptr<TcpListener> listener,
                           std::unique_ptr<RequestReader> reader,
                           Options options)
    : listener_(std::move(listener)),
      reader_(std::move(reader)),
      options_(std::move(options)) {
  for (const StatusPage& page : options_.pages) {
    served_.emplace_back(new Served(page));
  }
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this] { ServeAll(); });
  }
  reader_->Start([this](int socket, std::string text) {
    Enqueue({socket, std::move(text)});
  });
  // Last: sockets may arrive before Start() returns.
  listener_->Start([this](int, int socket) { reader_->Add(socket); });
}

StatusServer::~StatusServer() {
  // In the order of a socket's way, and before the lock, which Enqueue() takes:
  // afterwards no further request is queued.
  listener_->Stop();
  reader_->Stop();
  {
    MutexLock lock(mutex_);
    quit_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  MutexLock lock(mutex_);
  for (const Request& request : waiting_) CloseConnection(request.socket);
}

void StatusServer::Enqueue(Request request) {
  MutexLock lock(mutex_);
  // Closed instead of delayed: the next request of a scraper is more useful
  // than a late answer.
  if (waiting_.size() >= kLongestQueue) return CloseConnection(request.socket);
  waiting_.push_back(std::move(request));
  changed_.Signal();
}

void StatusServer::ServeAll() {
  while (true) {
    Request request;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !quit_) changed_.Wait(mutex_);
      // Requests that wait are dropped by the destructor.
      if (quit_) return;
      request = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Write(request.socket, Answer(request.text, request.socket));
    CloseConnection(request.socket);
  }
}

std::string StatusServer::Answer(const std::string& request, int socket) {
  const absl::StatusOr<HttpRequest> parsed = ParseHttpRequest(request);
  if (!parsed.ok()) {
    return Refusal("400 Bad Request", parsed.status().message());
  }
  return AnswerTo(*parsed, socket);
}

std::string StatusServer::AnswerTo(const HttpRequest& request, int socket) {
  if (request.method != "GET") {
    return Refusal("405 Method Not Allowed", "only GET");
  }
  if (!IsOwnHost(request.host, options_.host_names)) {
    return Refusal("421 Misdirected Request",
                   "ask for this server by its address in numbers, as "
                   "localhost, or by a name that TF_CONFIG has");
  }
  if (request.path == "/healthz") {
    const absl::Status health =
        options_.health == nullptr ? absl::OkStatus() : options_.health();
    return health.ok() ? Response("200 OK", "text/plain", "ok\n")
                       : Refusal("503 Service Unavailable", health.message());
  }
  for (const auto& served : served_) {
    if (served->page.path != request.path) continue;
    if (served->page.is_private && options_.guard && !IsPeerOfOwnUser(socket)) {
      return Refusal("403 Forbidden",
                     "the job has certificates: only its user sees this, on "
                     "the machine of this process; use lockstep status, or "
                     "ssh -L to that machine");
    }
    return served->Response();
  }
  return Refusal("404 Not Found",
                 "there are /metrics and /healthz, and on the "
                 "chief /, /status.json and /curves.json");
}

}  // namespace lockstep
