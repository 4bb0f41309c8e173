#include "chief/page/recorder.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/checkpoint/files/posix_file.h"
#include "common/metrics/durations.h"
#include "common/status/status_json.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kEvery = absl::Seconds(1);
constexpr absl::Duration kWriteEvery = absl::Seconds(10);
// Browsers that ask within this time share one page.
constexpr absl::Duration kPageLasts = absl::Milliseconds(500);
constexpr uint64_t kLargestFile = uint64_t{8} << 20;  // records have 600 KB
// A single server commits some steps by itself, and reports all at once; more
// than these are not observed one by one.
constexpr int64_t kMostAtOnce = 1000;

absl::Status Replace(const std::string& path, const std::string& text) {
  const std::string next = absl::StrCat(path, ".new");
  std::error_code error;
  std::filesystem::remove(next, error);  // of a chief that was killed
  if (const absl::Status written = WriteWholeFile(next, text); !written.ok()) {
    return written;
  }
  // A rename, so that a chief that is killed leaves a whole file, old or new.
  std::filesystem::rename(next, path, error);
  return error
             ? absl::UnavailableError(absl::StrCat(path, ": ", error.message()))
             : absl::OkStatus();
}

}  // namespace

Recorder::Recorder(Options options)
    : options_(std::move(options)),
      thread_(kEvery, [this, first = true]() mutable {
        // In this thread, since a slow disk must not delay the start of the
        // job.
        if (std::exchange(first, false)) Read();
        Sample();
      }) {}

void Recorder::Note(const JobReport& report, absl::Time now) {
  MutexLock lock(times_mutex_);
  if (const auto* begun = std::get_if<TrainingBegun>(&report)) {
    times_.Begin(begun->step, now);
    GoBack(begun->step);
  } else if (const auto* went = std::get_if<WentBack>(&report)) {
    // Scores of lost steps would stay until the evaluator has newer ones.
    GoBack(went->step);
  } else if (const auto* reached = std::get_if<StepReached>(&report)) {
    Reach(reached->step, now);
  } else if (const auto* set = std::get_if<SettingsInEffect>(&report)) {
    const bool resumed =
        std::exchange(paused_, set->settings.paused) && !paused_;
    // The time of a pause is that of no step.
    if (resumed && times_.step().has_value()) times_.Begin(*times_.step(), now);
  }
}

void Recorder::GoBack(int64_t step) {
  back_to_ = std::min(step, back_to_.value_or(step));
}

void Recorder::Reach(int64_t step, absl::Time now) {
  const int64_t steps =
      std::min(step - times_.step().value_or(step), kMostAtOnce);
  const std::optional<absl::Duration> each = times_.Reach(step, now);
  if (!each.has_value()) return;
  for (int64_t i = 0; i < steps; ++i) {
    StepSeconds().Observe(absl::ToDoubleSeconds(*each));
  }
}

void Recorder::Read() {
  if (options_.directory.empty()) return;
  const std::string path =
      (std::filesystem::path(options_.directory) / kFile).string();
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kLargestFile);
  if (absl::IsNotFound(text.status())) return;
  absl::StatusOr<JobRecord> record =
      text.ok() ? JobRecord::FromJson(*text, options_.job) : text.status();
  if (!record.ok()) {
    spdlog::warn("{}: {}; the page begins without the past of the job", path,
                 std::string(record.status().message()));
    return;
  }
  MutexLock lock(mutex_);
  record_ = *std::move(record);
}

void Recorder::Sample() {
  const SummarySample sample = options_.sample();
  std::optional<StepTimes::Quantiles> times;
  std::optional<int64_t> back_to;
  {
    MutexLock lock(times_mutex_);
    times = times_.Take();
    back_to = std::exchange(back_to_, std::nullopt);
  }
  {
    MutexLock lock(mutex_);
    // The job may have begun anew, or from an older checkpoint.
    if (back_to.has_value()) record_.GoBack(*back_to);
    record_.Add(sample, times.has_value() ? &*times : nullptr);
    paces_.Add(sample.members);
    steps_per_second_ = sample.job.steps_per_second;
  }
  // The last sample is written at once: the process ends soon.
  const bool final = IsFinal(sample.job.state);
  if (sample.job.state == JobState::kStarting || options_.directory.empty() ||
      (!final && sample.now - written_ < kWriteEvery)) {
    return;
  }
  written_ = sample.now;
  Write();
}

void Recorder::Write() {
  std::string text;
  {
    MutexLock lock(mutex_);
    // The file is written without the lock: the page is served meanwhile.
    text = record_.ToJson(options_.job);
  }
  const absl::Status written = Replace(
      (std::filesystem::path(options_.directory) / kFile).string(), text);
  // Not an error before the first checkpoint, which makes the directory.
  if (!written.ok() && !absl::IsNotFound(written) && !troubled_) {
    spdlog::warn("{}; after a restart the page lacks what was not written",
                 std::string(written.message()));
  }
  troubled_ = !written.ok();
}

PageContents Recorder::Contents() {
  PageContents contents;
  contents.now = absl::Now();
  contents.status = options_.status();
  contents.heartbeat_interval = options_.heartbeat_interval;
  MutexLock lock(mutex_);
  // A copy, so that the page is made without the lock.
  contents.record = record_;
  contents.paces = paces_.Get();
  contents.steps_per_second = steps_per_second_;
  return contents;
}

std::vector<StatusPage> Recorder::Pages() {
  return {
      {.path = "/",
       .type = "text/html; charset=utf-8",
       .policy = PagePolicy(),
       .body = [this] { return RenderPage(Contents()); },
       .is_private = true,
       .lasts = kPageLasts},
      {.path = "/status.json",
       .type = "application/json",
       .body = [this] { return FormatStatusJson(options_.status()) + "\n"; },
       .is_private = true,
       .lasts = kPageLasts},
      {.path = "/curves.json",
       .type = "application/json",
       .body =
           [this] {
             MutexLock lock(mutex_);
             return record_.ToJson(options_.job) + "\n";
           },
       .is_private = true,
       .lasts = kPageLasts}};
}

}  // namespace lockstep::chief
