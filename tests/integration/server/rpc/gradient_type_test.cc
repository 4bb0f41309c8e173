// What a client may send as gradients, said with an ordinary generated stub.

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// Values before any step, and after one with gradient 1.
const auto kInitial = ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2);
const auto kStepped =
    ElementsAre(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.5, 1.5);

// The upper halves of 1, 2, -4 and the like, for both parts of "w".
v1::PushRequest BFloat16Request(const std::vector<uint16_t>& bits) {
  v1::PushRequest request = ServedShard::PushRequest(0, 1, 0);
  request.mutable_header()->set_gradient_type(v1::BFLOAT16);
  request.mutable_header()->mutable_parts()->set_num_parts(2);
  request.mutable_payload()->assign(reinterpret_cast<const char*>(bits.data()),
                                    2 * bits.size());
  return request;
}

class GradientTypeTest : public ::testing::Test {
 protected:
  explicit GradientTypeTest(SyncMode mode = SyncMode::kStrict)
      : shard_(/*task_index=*/0, mode) {
    shard_.Open();
  }

  absl::StatusOr<v1::PushResponse> Push(const v1::PushRequest& request) {
    return Call(shard_.parameters(), &v1::ParameterService::Stub::Push,
                request);
  }
  void ExpectRefused(const v1::PushRequest& request, const char* why) {
    EXPECT_THAT(Push(request), StatusIs(kInvalid, HasSubstr(why)));
    EXPECT_THAT(shard_.Values(), kInitial);
    shard_.Step(0, 1);
    EXPECT_THAT(shard_.Values(), kStepped);
  }

  ServedShard shard_;
};

TEST_F(GradientTypeTest, StepOfBFloat16GradientsIsSeenAsFloats) {
  shard_.Announce(0);
  v1::PushRequest request = BFloat16Request(
      {0x3f80, 0x4000, 0xc080, 0, 0x3f81, 0x3f00, 0xbf80, 0x8000});
  request.mutable_header()->set_return_values(true);

  auto pushed = Push(request);
  ASSERT_OK(pushed);
  // Pushes "b", in whose place "w" has counted already.
  shard_.Step(0, 1);

  EXPECT_THAT(pushed->header().outcomes(), Each(v1::ACCEPTED));
  EXPECT_EQ(pushed->payload().size(), 8 * sizeof(float));
  EXPECT_THAT(shard_.Values(), ElementsAre(0.5, 0, 3, 1, 1 - 0.50390625, 0.75,
                                           1.5, 1, 1.5, 1.5));
}

TEST_F(GradientTypeTest, VariableIsTheDefault) {
  shard_.Announce(0);
  v1::PushRequest request = ServedShard::PushRequest(0, 1, 1);
  request.mutable_header()->set_gradient_type(v1::VARIABLE);

  EXPECT_OK(Push(request));
  shard_.Step(0, 100);  // its push is a repetition

  EXPECT_THAT(shard_.Values(), kStepped);
}

TEST_F(GradientTypeTest, BFloat16OfAFloat64PartIsRefused) {
  v1::PushRequest request = BFloat16Request(std::vector<uint16_t>(10, 0x42c8));
  request.mutable_header()->mutable_parts()->set_num_parts(3);

  ExpectRefused(request,
                "part 2 (\"b\"): gradient type BFLOAT16 is not for a float64");
}

TEST_F(GradientTypeTest, PayloadOfFloatsSaidToBeBFloat16IsRefused) {
  v1::PushRequest request = BFloat16Request({});
  request.mutable_payload()->assign(32, 'x');

  ExpectRefused(request,
                "payload has 32 bytes; parts 0 to 1 have 16 as "
                "BFLOAT16");
}

TEST_F(GradientTypeTest, HalfABFloat16IsRefused) {
  v1::PushRequest request = BFloat16Request(std::vector<uint16_t>(8, 0x42c8));
  request.mutable_payload()->pop_back();

  ExpectRefused(request, "payload has 15 bytes");
}

TEST_F(GradientTypeTest, BFloat16NotSaidToBeSoIsRefused) {
  v1::PushRequest request = BFloat16Request(std::vector<uint16_t>(8, 0x42c8));
  request.mutable_header()->clear_gradient_type();

  ExpectRefused(request,
                "payload has 16 bytes; parts 0 to 1 have 32 as "
                "VARIABLE");
}

TEST_F(GradientTypeTest, NonFiniteBFloat16IsRefused) {
  for (const uint16_t bad : {0x7fc0, 0x7f80, 0xff80}) {
    std::vector<uint16_t> bits(8, 0x42c8);
    bits[7] = bad;
    EXPECT_THAT(Push(BFloat16Request(bits)),
                StatusIs(kInvalid, HasSubstr("NaN or an infinity")));
  }
  std::vector<uint16_t> bits(8, 0x42c8);
  bits[0] = 0x7f81;
  ExpectRefused(BFloat16Request(bits), "NaN or an infinity");
}

TEST_F(GradientTypeTest, TypeWithoutANameIsRefused) {
  for (const int number : {3, 77, -1, std::numeric_limits<int>::max()}) {
    v1::PushRequest request = ServedShard::PushRequest(0, 1, 100);
    request.mutable_header()->set_gradient_type(
        static_cast<v1::GradientType>(number));
    EXPECT_THAT(Push(request),
                StatusIs(kInvalid, HasSubstr("gradient_type is the number ")));
  }
  EXPECT_THAT(shard_.Values(), kInitial);
}

class CompatibleGradientTypeTest : public GradientTypeTest {
 protected:
  CompatibleGradientTypeTest() : GradientTypeTest(SyncMode::kCompatible) {}
};

TEST_F(CompatibleGradientTypeTest, BFloat16IsRefused) {
  ExpectRefused(BFloat16Request(std::vector<uint16_t>(8, 0x42c8)),
                "part 0 is BFLOAT16; in compatible mode send VARIABLE");
}

// A variable of two bytes an element, from the wire to its values and back.
class HalfVariableTest
    : public ::testing::TestWithParam<std::tuple<SyncMode, DType>> {};

TEST_P(HalfVariableTest, IsCreatedUpdatedAndPulled) {
  const auto [mode, dtype] = GetParam();
  ServedShard shard(/*task_index=*/0, mode, dtype);
  shard.Open();
  const std::vector<uint16_t> gradient(8, 0x4000);  // 2, in both
  v1::PushRequest push = ServedShard::PushRequest(0, 1, 1);
  const std::string doubles = push.payload().substr(32);
  push.mutable_payload()->assign(reinterpret_cast<const char*>(gradient.data()),
                                 16);
  push.mutable_payload()->append(doubles);

  auto announced = Call(shard.sync(), &v1::SyncService::Stub::Announce,
                        ServedShard::AnnounceRequest(0, 0));
  ASSERT_OK(announced);
  push.mutable_header()->set_attempt(announced->attempt());
  ASSERT_OK(Call(shard.parameters(), &v1::ParameterService::Stub::Push, push));
  shard.FinishStep(0);

  // 1 - 0.5 * 2, and 2 - 0.5 * 1.
  auto pulled = Call(shard.parameters(), &v1::ParameterService::Stub::Pull,
                     ServedShard::PullRequest(-1));
  ASSERT_OK(pulled);
  ASSERT_EQ(pulled->payload().size(), 32);
  EXPECT_EQ(pulled->payload().substr(0, 16), std::string(16, '\0'));
  // Elements of another size are refused.
  EXPECT_THAT(Call(shard.parameters(), &v1::ParameterService::Stub::Push,
                   ServedShard::PushRequest(1, 2, 1)),
              StatusIs(kInvalid, HasSubstr("payload has 48 bytes")));
}

INSTANTIATE_TEST_SUITE_P(
    All, HalfVariableTest,
    ::testing::Combine(::testing::Values(SyncMode::kStrict,
                                         SyncMode::kCompatible),
                       ::testing::Values(DType::kFloat16, DType::kBFloat16)));

}  // namespace
}  // namespace lockstep::testing
