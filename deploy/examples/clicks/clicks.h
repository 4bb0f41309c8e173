#ifndef LOCKSTEP_DEPLOY_EXAMPLES_CLICKS_CLICKS_H_
#define LOCKSTEP_DEPLOY_EXAMPLES_CLICKS_CLICKS_H_

#include <cstdint>
#include <random>
#include <vector>

#include "common/records/tf_example.h"

namespace lockstep {

// An advertisement that was shown to somebody, and what became of it.
struct Impression {
  int user = 0;
  int ad = 0;
  int site = 0;
  int device = 0;
  double hour = 0;  // of the day, in [0, 1)
  bool clicked = false;

  // True log-odds of a click, and that part of them which is a sum of a term
  // for each feature and one for each pair of site and device.
  double log_odds = 0;
  double wide_log_odds = 0;
};

// The categories "user", "ad", "site" and "device", the number "hour", and
// "clicked", 0 or 1.
TfExample ToExample(const Impression& impression);

// ClickModel draws impressions, whose clicks follow a logistic model with known
// parameters: the log-odds are
//
//   a term for each user, ad, site and device
//   + one for each pair of site and device, which a weight for each can learn
//   + taste[user] * topic[ad], of which no pair is seen often enough for that
//   + 1.2 sin(2 pi hour), which is not linear
//
// What is known of the log-odds of impressions that a model was not trained on
// is the best that it can reach: no score orders them better on average.
//
// All categories are equally frequent and independent, as is the hour. Equal
// seeds give equal impressions.
class ClickModel {
 public:
  static constexpr int kUsers = 300;
  static constexpr int kAds = 200;
  static constexpr int kSites = 50;
  static constexpr int kDevices = 6;

  explicit ClickModel(uint64_t seed);

  // The next one.
  Impression Draw();

 private:
  double Uniform();  // in [0, 1)
  double Normal();   // mean 0, variance 1
  int Below(int bound);
  std::vector<double> Normals(int count, double deviation);

  std::mt19937_64 random_;
  std::vector<double> of_user_;
  std::vector<double> of_ad_;
  std::vector<double> of_site_;
  std::vector<double> of_device_;
  std::vector<double> of_pair_;  // site * kDevices + device
  std::vector<double> taste_;    // of users
  std::vector<double> topic_;    // of ads
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_EXAMPLES_CLICKS_CLICKS_H_
