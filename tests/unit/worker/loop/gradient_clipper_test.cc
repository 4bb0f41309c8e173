#include "worker/loop/gradient_clipper.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

using Kind = ClippingConfig::Kind;

absl::Span<std::byte> Bytes(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(float)};
}

// A pass of two gradients, of norms 3 and 4, the second one first.
class GradientClipperTest : public ::testing::Test {
 protected:
  GradientClipper Make(Kind kind, double limit) {
    return {{kind, limit}, DType::kFloat32, [this] {
              return GradientClipper::Gradients{Bytes(first_), Bytes(second_)};
            }};
  }

  void MakeReady(GradientClipper& clipper) {
    second_ = {0, 4};
    clipper.Ready(1, [this](size_t variable, bool) { Send(variable); });
    first_ = {3};
    clipper.Ready(0, [this](size_t variable, bool) { Send(variable); });
  }

  void End(GradientClipper& clipper) {
    clipper.EndPass([this](size_t variable, bool) { Send(variable); });
  }

  void Send(size_t variable) {
    order_.push_back(variable);
    sent_.push_back(variable == 0 ? first_[0] : second_[1]);
  }

  std::vector<float> first_ = {0};
  std::vector<float> second_ = {0, 0};
  std::vector<size_t> order_;
  std::vector<float> sent_;  // as it was when it was sent
};

TEST_F(GradientClipperTest, GlobalNormIsOfAllGradients) {
  GradientClipper clipper = Make(Kind::kGlobalNorm, 2.5);
  clipper.BeginPass();

  MakeReady(clipper);
  EXPECT_THAT(order_, ElementsAre());
  End(clipper);

  EXPECT_THAT(order_, ElementsAre(1, 0));
  EXPECT_THAT(sent_, ElementsAre(FloatEq(2), FloatEq(1.5)));
}

TEST_F(GradientClipperTest, NormIsOfEachGradientAlone) {
  GradientClipper clipper = Make(Kind::kNorm, 2);

  MakeReady(clipper);

  EXPECT_THAT(order_, ElementsAre(1, 0));
  EXPECT_THAT(sent_, ElementsAre(FloatEq(2), FloatEq(2)));
}

TEST_F(GradientClipperTest, ValuesAreLimitedBeforeTheyAreSent) {
  GradientClipper clipper = Make(Kind::kValue, 3.5);

  MakeReady(clipper);

  EXPECT_THAT(sent_, ElementsAre(3.5f, 3));
}

TEST_F(GradientClipperTest, AbsentGradientKeepsItsPlaceAndIsSentAsSuch) {
  for (const Kind kind :
       {Kind::kNone, Kind::kValue, Kind::kNorm, Kind::kGlobalNorm}) {
    GradientClipper clipper = Make(kind, 1);
    std::vector<std::pair<size_t, bool>> sent;
    const auto send = [&sent](size_t variable, bool absent) {
      sent.emplace_back(variable, absent);
    };
    clipper.BeginPass();
    first_ = {0};
    second_ = {0, 4};

    clipper.Ready(1, send);
    clipper.Absent(0, send);
    EXPECT_EQ(sent.empty(), kind == Kind::kGlobalNorm);
    clipper.EndPass(send);

    EXPECT_THAT(sent, ElementsAre(std::pair(size_t{1}, false),
                                  std::pair(size_t{0}, true)));
    EXPECT_THAT(first_, ElementsAre(0));
  }
}

TEST_F(GradientClipperTest, GradientsOfADroppedPassAreNeverSent) {
  GradientClipper clipper = Make(Kind::kGlobalNorm, 2.5);
  clipper.BeginPass();
  MakeReady(clipper);

  clipper.BeginPass();
  MakeReady(clipper);
  End(clipper);

  EXPECT_THAT(order_, ElementsAre(1, 0));
}

TEST_F(GradientClipperTest, NothingIsSentTwice) {
  for (const Kind kind : {Kind::kNone, Kind::kNorm, Kind::kGlobalNorm}) {
    order_.clear();
    GradientClipper clipper = Make(kind, 2.5);
    clipper.BeginPass();
    MakeReady(clipper);

    End(clipper);

    EXPECT_THAT(order_, ElementsAre(1, 0));
  }
}

TEST_F(GradientClipperTest, NormOfTheMeanIsTheServersWork) {
  GradientClipper clipper = Make(Kind::kMeanGlobalNorm, 1);
  clipper.BeginPass();

  MakeReady(clipper);
  End(clipper);

  EXPECT_THAT(order_, ElementsAre(1, 0));
  EXPECT_THAT(sent_, ElementsAre(4, 3));
}

}  // namespace
}  // namespace lockstep::worker
