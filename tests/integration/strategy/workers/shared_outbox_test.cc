#include "strategy/workers/shared_outbox.h"

#include <cstring>
#include <memory>
#include <vector>

#include "common/wire/shared_memory_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

Parcel ParcelOf(std::vector<float> elements) {
  const auto size = static_cast<int64_t>(elements.size());
  return std::make_shared<const std::vector<Leaf>>(std::vector<Leaf>{
      Value::Of<float>(ElementType::kFloat32, {size}, elements)});
}

// What another process finds at the place.
std::vector<float> FoundAt(const v1::SharedPayload& payload, size_t elements) {
  const auto memory =
      PeerMemory::Open(FromProto(payload.file()), PeerMemory::Require::kSealed);
  EXPECT_OK(memory);
  EXPECT_TRUE((*memory)->Holds(payload.offset(), elements * sizeof(float)));
  std::vector<float> found(elements);
  std::memcpy(found.data(), (*memory)->bytes().data() + payload.offset(),
              elements * sizeof(float));
  return found;
}

TEST(SharedOutboxTest, APayloadForSeveralMembersHasOnePlace) {
  SharedOutbox outbox;
  const Parcel for_all = ParcelOf({1, 2, 3});
  const Parcel for_one = ParcelOf({4, 5});
  ASSERT_TRUE(outbox.Begin(20));

  const v1::SharedPayload first = outbox.Place(for_all);
  const v1::SharedPayload other = outbox.Place(for_one);

  EXPECT_EQ(outbox.Place(for_all).offset(), first.offset());
  EXPECT_THAT(FoundAt(first, 3), ::testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(FoundAt(other, 2), ::testing::ElementsAre(4, 5));
}

TEST(SharedOutboxTest, TheNextExchangeUsesTheSameMemoryIfItIsLargeEnough) {
  SharedOutbox outbox;
  ASSERT_TRUE(outbox.Begin(12));
  const v1::SharedPayload first = outbox.Place(ParcelOf({1, 2, 3}));
  ASSERT_TRUE(outbox.Begin(8));
  const v1::SharedPayload next = outbox.Place(ParcelOf({4, 5}));
  EXPECT_EQ(next.file().proof(), first.file().proof());
  EXPECT_THAT(FoundAt(next, 2), ::testing::ElementsAre(4, 5));

  ASSERT_TRUE(outbox.Begin(1 << 20));
  const v1::SharedPayload larger =
      outbox.Place(ParcelOf(std::vector<float>(1 << 18, 7)));
  EXPECT_NE(larger.file().proof(), first.file().proof());
  EXPECT_THAT(FoundAt(larger, 1 << 18), ::testing::Each(7));
}

TEST(SharedOutboxTest, MemoryThatTheSystemDoesNotHaveIsNotAskedForAgain) {
  SharedOutbox outbox;
  EXPECT_FALSE(outbox.Begin(0));
  EXPECT_FALSE(outbox.Begin(size_t{1} << 60));
  EXPECT_FALSE(outbox.Begin(8));
}

}  // namespace
}  // namespace lockstep::strategy
