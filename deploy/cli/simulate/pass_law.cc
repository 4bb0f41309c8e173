#include "deploy/cli/simulate/pass_law.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/text/excerpt.h"

namespace lockstep::cli {
namespace {

constexpr double kShortest = 1e-6;
constexpr double kLongest = 1e6;
constexpr char kSeconds[] = "a duration above 0 and of at most 1000000s";
constexpr char kForms[] =
    "constant(50ms), normal(50ms, 5ms), lognormal(50ms, 0.3), "
    "exponential(50ms) or pareto(50ms, 3)";
constexpr int kDraws = 4000;
constexpr int kMostSlow = 1'000'000;
// Intervals of a higher rate may be too short for absl::Duration: the virtual
// clock would stand still.
constexpr double kHighestRate = 1000;  // per second

absl::Status Wrong(absl::string_view text, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat(Excerpt(text), " must be ", wanted));
}

// A duration in seconds, in (0, kLongest].
bool ParseSeconds(absl::string_view text, double& seconds) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration)) return false;
  seconds = absl::ToDoubleSeconds(duration);
  return seconds > 0 && seconds <= kLongest;
}

// Uniform in (0, 1).
// The standard fixes the numbers of mt19937_64, but not those of its
// distributions, and equal seeds must give equal passes.
double Uniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
}

// A number of mean 0 and standard deviation 1, by Box and Muller.
double Normal(std::mt19937_64& random) {
  const double radius = std::sqrt(-2 * std::log(Uniform(random)));
  return radius * std::cos(2 * M_PI * Uniform(random));
}

// Some laws have draws without a limit, and passes of no time would let the
// virtual clock stand still.
double Limited(double seconds) {
  return std::clamp(seconds, kShortest, kLongest);
}

}  // namespace

absl::StatusOr<PassLaw> PassLaw::Parse(absl::string_view text) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  // A bare duration is the constant law.
  PassLaw every;
  if (ParseSeconds(rest, every.seconds_)) {
    every.FindMean();
    return every;
  }
  const size_t open = rest.find('(');
  if (open == absl::string_view::npos || !absl::ConsumeSuffix(&rest, ")")) {
    absl::Duration bare;
    return Wrong(text, absl::ParseDuration(rest, &bare)
                           ? kSeconds
                           : absl::StrCat("like ", kForms));
  }
  const absl::string_view name = rest.substr(0, open);
  std::vector<absl::string_view> numbers =
      absl::StrSplit(rest.substr(open + 1), ',');
  for (absl::string_view& number : numbers) {
    number = absl::StripAsciiWhitespace(number);
  }
  const std::vector<std::pair<absl::string_view, Kind>> kinds = {
      {"constant", Kind::kConstant},
      {"normal", Kind::kNormal},
      {"lognormal", Kind::kLognormal},
      {"exponential", Kind::kExponential},
      {"pareto", Kind::kPareto}};
  const auto kind =
      std::find_if(kinds.begin(), kinds.end(),
                   [&](const auto& one) { return one.first == name; });
  if (kind == kinds.end()) return Wrong(text, absl::StrCat("like ", kForms));
  PassLaw law;
  law.kind_ = kind->second;
  const bool single =
      law.kind_ == Kind::kConstant || law.kind_ == Kind::kExponential;
  if (numbers.size() != (single ? 1u : 2u)) {
    return Wrong(text, absl::StrCat("with ", single ? "1 number" : "2 numbers",
                                    ", like ", kForms));
  }
  if (!ParseSeconds(numbers[0], law.seconds_)) {
    return Wrong(numbers[0], kSeconds);
  }
  if (law.kind_ == Kind::kNormal) {
    if (!ParseSeconds(numbers[1], law.second_)) {
      return Wrong(numbers[1], kSeconds);
    }
    // Draws below zero would be passes that take no time.
    if (law.second_ > law.seconds_ / 2) {
      return Wrong(
          numbers[1],
          absl::StrCat("at most half of the mean, ", numbers[0], "; lognormal(",
                       numbers[0], ", 0.8) spreads wider"));
    }
  } else if (!single && (!absl::SimpleAtod(numbers[1], &law.second_) ||
                         !(law.second_ > 0) || law.second_ > 1000)) {
    return Wrong(numbers[1], "a number above 0 and of at most 1000");
  }
  law.FindMean();
  return law;
}

PassLaw PassLaw::Empirical(std::vector<double> seconds) {
  PassLaw law;
  law.kind_ = Kind::kEmpirical;
  law.trace_ = std::make_shared<const std::vector<double>>(std::move(seconds));
  law.FindMean();
  return law;
}

double PassLaw::Draw(std::mt19937_64& random) const {
  double seconds = seconds_;
  switch (kind_) {
    case Kind::kConstant:
      break;
    case Kind::kNormal:
      seconds = seconds_ + second_ * Normal(random);
      break;
    case Kind::kLognormal:
      seconds = seconds_ * std::exp(second_ * Normal(random));
      break;
    case Kind::kExponential:
      seconds = -seconds_ * std::log(Uniform(random));
      break;
    case Kind::kPareto:
      seconds = seconds_ * std::pow(Uniform(random), -1 / second_);
      break;
    case Kind::kEmpirical:
      seconds = (*trace_)[static_cast<size_t>(random() % trace_->size())];
      break;
  }
  return Limited(seconds);
}

void PassLaw::FindMean() {
  double sum = 0;
  if (kind_ == Kind::kEmpirical) {
    for (const double seconds : *trace_) sum += Limited(seconds);
    mean_ = sum / static_cast<double>(trace_->size());
    return;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < kDraws; ++i) sum += Draw(random);
  mean_ = sum / kDraws;
}

absl::StatusOr<SlowWorkers> ParseSlowWorkers(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('x', 1));
  SlowWorkers slow;
  if (!absl::SimpleAtoi(parts.first, &slow.count) || slow.count < 1 ||
      slow.count > kMostSlow || !absl::SimpleAtod(parts.second, &slow.factor) ||
      !(slow.factor > 0) || slow.factor > 1e6) {
    return Wrong(text, "like 3x4: three workers, four times slower");
  }
  return slow;
}

absl::StatusOr<double> ParseRate(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  double count = 0;
  double seconds = 0;
  const bool bare =
      parts.second == "h" || parts.second == "m" || parts.second == "s";
  const std::string time = absl::StrCat(bare ? "1" : "", parts.second);
  if (!absl::SimpleAtod(parts.first, &count) || !(count >= 0) || count > 1e6 ||
      !ParseSeconds(time, seconds)) {
    return Wrong(text, "like 1/h or 2/30s: so many in a time, of one worker");
  }
  const double rate = count / seconds;
  if (rate > kHighestRate) {
    return Wrong(text, absl::StrCat("at most ", kHighestRate,
                                    "/s, of one worker; 1/h is once an hour"));
  }
  return rate;
}

}  // namespace lockstep::cli
