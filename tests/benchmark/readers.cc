#include "tests/benchmark/readers.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/testing/raw_socket.h"

namespace lockstep::benchmark {
namespace {

constexpr absl::Duration kEvery = absl::Seconds(1);

// The port at which a process serves its status; 0: not known yet.
int PortOf(const testing::ProcessCluster& cluster, const std::string& job,
           int index) {
  const std::string announced = "status on port ";
  const std::string log = cluster.ReadLog(job, index).value_or("");
  const size_t at = log.find(announced);
  if (at == std::string::npos) return 0;
  const size_t begin = at + announced.size();
  int port = 0;
  return absl::SimpleAtoi(log.substr(begin, log.find('\n', begin) - begin),
                          &port)
             ? port
             : 0;
}

bool Read(int port, absl::string_view path) {
  const testing::RawSocket socket(port);
  if (!socket.Send(
          absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"))) {
    return false;
  }
  std::string answer;
  for (std::string more = socket.Receive(); !more.empty();
       more = socket.Receive()) {
    answer += more;
  }
  return absl::StartsWith(answer, "HTTP/1.1 200");
}

}  // namespace

Readers::Readers(const Candidate& candidate, testing::ProcessCluster& cluster)
    : cluster_(cluster) {
  tasks_.emplace_back("chief", 0);
  for (int i = 0; i < candidate.servers; ++i) tasks_.emplace_back("ps", i);
  for (int i = 0; i < candidate.workers; ++i) tasks_.emplace_back("worker", i);
  thread_ = std::thread([this] { Run(); });
}

Readers::~Readers() {
  ends_ = true;
  thread_.join();
}

void Readers::Run() {
  std::vector<int> ports(tasks_.size());
  absl::Time next = absl::Now();
  while (!ends_) {
    absl::SleepFor(absl::Milliseconds(10));
    if (absl::Now() < next) continue;
    next += kEvery;
    for (size_t i = 0; i < tasks_.size() && !ends_; ++i) {
      const auto& [job, index] = tasks_[i];
      if (ports[i] == 0) ports[i] = PortOf(cluster_, job, index);
      if (ports[i] == 0) continue;
      if (Read(ports[i], "/metrics")) ++answers_;
      if (job == "chief" && Read(ports[i], "/")) ++answers_;
    }
  }
}

}  // namespace lockstep::benchmark
