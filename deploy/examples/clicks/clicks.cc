#include "deploy/examples/clicks/clicks.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr double kBias = -1;  // about a third is clicked
constexpr double kHour = 1.2;

}  // namespace

TfExample ToExample(const Impression& impression) {
  return {
      {"user", {.bytes = {absl::StrCat("user ", impression.user)}}},
      {"ad", {.ints = {impression.ad}}},
      {"site", {.bytes = {absl::StrCat("site ", impression.site)}}},
      {"device", {.ints = {impression.device}}},
      {"hour", {.floats = {static_cast<float>(impression.hour)}}},
      {"clicked", {.ints = {impression.clicked ? 1 : 0}}},
  };
}

ClickModel::ClickModel(uint64_t seed)
    : random_(seed),
      of_user_(Normals(kUsers, 0.5)),
      of_ad_(Normals(kAds, 0.5)),
      of_site_(Normals(kSites, 0.5)),
      of_device_(Normals(kDevices, 0.5)),
      of_pair_(Normals(kSites * kDevices, 0.8)),
      taste_(Normals(kUsers, 1.25)),
      topic_(Normals(kAds, 1.25)) {}

// The distributions of the standard library differ from one to the next; its
// generators do not.
double ClickModel::Uniform() {
  return static_cast<double>(random_() >> 11) * 0x1p-53;
}

// Box and Muller.
double ClickModel::Normal() {
  const double length = std::sqrt(-2 * std::log(1 - Uniform()));
  return length * std::cos(2 * std::numbers::pi * Uniform());
}

int ClickModel::Below(int bound) { return static_cast<int>(Uniform() * bound); }

std::vector<double> ClickModel::Normals(int count, double deviation) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(deviation * Normal());
  return values;
}

Impression ClickModel::Draw() {
  Impression impression;
  impression.user = Below(kUsers);
  impression.ad = Below(kAds);
  impression.site = Below(kSites);
  impression.device = Below(kDevices);
  impression.hour = Uniform();
  impression.wide_log_odds =
      kBias + of_user_[impression.user] + of_ad_[impression.ad] +
      of_site_[impression.site] + of_device_[impression.device] +
      of_pair_[impression.site * kDevices + impression.device];
  impression.log_odds =
      impression.wide_log_odds +
      taste_[impression.user] * topic_[impression.ad] +
      kHour * std::sin(2 * std::numbers::pi * impression.hour);
  impression.clicked = Uniform() < 1 / (1 + std::exp(-impression.log_odds));
  return impression;
}

}  // namespace lockstep
