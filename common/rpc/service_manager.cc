#include "common/rpc/service_manager.h"

#include <systemd/sd-daemon.h>

#include <chrono>
#include <cstdint>

#include "common/base/log.h"
#include "common/rpc/own_server.h"

namespace lockstep {
namespace {

// Zero if systemd does not watch the process.
absl::Duration WatchdogInterval() {
  uint64_t micros = 0;
  if (sd_watchdog_enabled(0, &micros) <= 0) return absl::ZeroDuration();
  return absl::Microseconds(static_cast<int64_t>(micros));
}

}  // namespace

ServiceManagerClient::ServiceManagerClient(const std::string& address)
    : own_server_(address) {
  sd_notify(0, "READY=1\nSTATUS=Serving");
  const absl::Duration interval = WatchdogInterval();
  if (interval == absl::ZeroDuration() || address.empty()) return;
  thread_ = std::thread([this, interval] { Watch(interval); });
}

ServiceManagerClient::~ServiceManagerClient() {
  sd_notify(0, "STOPPING=1\nSTATUS=Leaving");
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    quit_ = true;
    wake_.SignalAll();
  }
  thread_.join();
}

void ServiceManagerClient::Watch(absl::Duration watchdog) {
  using std::chrono::steady_clock;
  while (true) {
    // Between a success and the end of the watchdog's interval two checks begin
    // and end, so one may fail or be late without a restart. The pause counts
    // from the start of a check: a timeout must not delay the next one.
    const auto next =
        steady_clock::now() + absl::ToChronoMilliseconds(watchdog / 3);
    const absl::Status serves = CheckOwnServer(own_server_, watchdog / 4);
    if (serves.ok()) {
      sd_notify(0, "WATCHDOG=1");
    } else {
      spdlog::warn("{}", serves.message());
    }
    MutexLock lock(mutex_);
    // `quit_` may have been set during the check, whose wait nothing
    // interrupts.
    while (!quit_ && steady_clock::now() < next) {
      wake_.WaitFor(mutex_, next - steady_clock::now());
    }
    if (quit_) return;
  }
}

}  // namespace lockstep
