#include "tests/benchmark/step_samples.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace lockstep::benchmark {

int64_t NowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::Status WriteSamples(const std::string& path,
                          const std::vector<StepSample>& samples) {
  std::ofstream file(path);
  for (const StepSample& s : samples) {
    file << s.total << ' ' << s.pull << ' ' << s.announce << ' ' << s.push
         << ' ' << s.token << '\n';
  }
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::StatusOr<std::vector<StepSample>> ReadSamples(const std::string& path) {
  std::ifstream file(path);
  std::vector<StepSample> samples;
  StepSample s;
  while (file >> s.total >> s.pull >> s.announce >> s.push >> s.token) {
    samples.push_back(s);
  }
  if (file.eof() && !samples.empty()) return samples;
  return absl::UnavailableError(
      absl::StrCat(path, " cannot be read or holds no step times"));
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
    values.push_back(static_cast<double>(sample.*field) / 1e6);
  }
  return Median(std::move(values));
}

}  // namespace lockstep::benchmark
