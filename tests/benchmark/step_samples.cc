#include "tests/benchmark/step_samples.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace lockstep::benchmark {

RunRecorder::RunRecorder(int64_t warmup, int64_t steps)
    : warmup_left_(warmup), steps_left_(steps) {
  if (warmup <= 0) before_ = UsageOfSiblings();
}

void RunRecorder::Add(const StepSample& sample) {
  if (warmup_left_ > 0) {
    warmup_left_ -= sample.steps;
    if (warmup_left_ <= 0) before_ = UsageOfSiblings();
  } else if (steps_left_ > 0) {
    record_.samples.push_back(sample);
    steps_left_ -= sample.steps;
    if (steps_left_ <= 0) Finish();
  }
}

RunRecord RunRecorder::Finish() {
  if (!finished_) {
    finished_ = true;
    const ResourceUsage usage = UsageOfSiblings();
    record_.cpu_seconds = usage.cpu_seconds - before_.cpu_seconds;
    record_.sent_bytes = usage.sent_bytes - before_.sent_bytes;
    record_.server = usage.server;
  }
  return record_;
}

int64_t NowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::Status WriteRecord(const std::string& path, const RunRecord& record) {
  std::ofstream file(path);
  const ProcessMemory& server = record.server;
  file << record.cpu_seconds << ' ' << server.anonymous << ' ' << server.file
       << ' ' << server.shared << ' ' << server.peak << ' ' << record.sent_bytes
       << '\n';
  for (const StepSample& s : record.samples) {
    file << s.total << ' ' << s.pull << ' ' << s.announce << ' ' << s.push
         << ' ' << s.token << ' ' << s.steps << '\n';
  }
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::StatusOr<RunRecord> ReadRecord(const std::string& path) {
  std::ifstream file(path);
  RunRecord record;
  ProcessMemory& server = record.server;
  file >> record.cpu_seconds >> server.anonymous >> server.file >>
      server.shared >> server.peak >> record.sent_bytes;
  StepSample s;
  while (file >> s.total >> s.pull >> s.announce >> s.push >> s.token >>
         s.steps) {
    record.samples.push_back(s);
  }
  const bool sound =
      std::all_of(record.samples.begin(), record.samples.end(),
                  [](const StepSample& sample) { return sample.steps > 0; });
  if (file.eof() && sound && !record.samples.empty()) return record;
  return absl::UnavailableError(
      absl::StrCat(path, " cannot be read or holds no step times"));
}

int64_t CountSteps(const std::vector<StepSample>& samples) {
  int64_t steps = 0;
  for (const StepSample& sample : samples) steps += sample.steps;
  return steps;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

double MedianMs(const std::vector<StepSample>& samples,
                int64_t StepSample::*field) {
  std::vector<double> values;
  for (const StepSample& sample : samples) {
    const auto steps = static_cast<double>(sample.steps);
    values.insert(values.end(), sample.steps,
                  static_cast<double>(sample.*field) / steps / 1e6);
  }
  return Median(std::move(values));
}

double MeanMs(const std::vector<StepSample>& samples,
              int64_t StepSample::*field) {
  double sum = 0;
  for (const StepSample& sample : samples) {
    sum += static_cast<double>(sample.*field) / 1e6;
  }
  return samples.empty() ? 0 : sum / static_cast<double>(CountSteps(samples));
}

}  // namespace lockstep::benchmark
