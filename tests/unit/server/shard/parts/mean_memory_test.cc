#include "server/shard/parts/mean_memory.h"

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

// Parts of 12, 0 and 100 bytes.
std::unique_ptr<MeanMemory> Shared() {
  const size_t sizes[] = {12, 0, 100};
  return MeanMemory::MakeShared(sizes).value();
}

bool Written(const PeerMemory& counters, const SharedPlace& place) {
  return WrittenSince(counters, place.counter, place.writes);
}

TEST(MeanMemoryTest, MeansAreWhereTheirPlaceSays) {
  auto means = Shared();
  const auto buffer = means->Renew(2, 100, nullptr);
  buffer->bytes[99] = std::byte{7};

  const auto place = means->PlaceOf(2, *buffer);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->offset % 64, 0u);
  const auto seen =
      PeerMemory::Open(means->files()->means, PeerMemory::Require::kSealed);
  ASSERT_OK(seen);
  ASSERT_TRUE((*seen)->Holds(place->offset, 100));
  EXPECT_EQ((*seen)->bytes()[place->offset + 99], std::byte{7});
}

TEST(MeanMemoryTest, RenewalShowsReadersThatTheyWereTooSlow) {
  auto means = Shared();
  auto buffer = means->Renew(0, 12, nullptr);
  const SharedPlace place = *means->PlaceOf(0, *buffer);
  const auto counters =
      PeerMemory::Open(means->files()->counters, PeerMemory::Require::kSealed);
  ASSERT_OK(counters);
  const auto other = means->Renew(2, 100, nullptr);
  EXPECT_FALSE(Written(**counters, place));

  const std::byte* first = buffer->bytes.data();
  buffer = means->Renew(0, 12, std::move(buffer));

  EXPECT_EQ(buffer->bytes.data(), first);
  EXPECT_TRUE(Written(**counters, place));
  EXPECT_FALSE(Written(**counters, *means->PlaceOf(0, *buffer)));
}

TEST(MeanMemoryTest, PrivateMemoryStandsInWhileAnAnswerHoldsTheMean) {
  auto means = Shared();
  auto buffer = means->Renew(0, 12, nullptr);
  const std::byte* shared = buffer->bytes.data();
  const SharedPlace place = *means->PlaceOf(0, *buffer);
  const auto counters =
      PeerMemory::Open(means->files()->counters, PeerMemory::Require::kSealed);
  ASSERT_OK(counters);
  auto answer = buffer;

  buffer = means->Renew(0, 12, std::move(buffer));
  EXPECT_NE(buffer->bytes.data(), shared);
  EXPECT_FALSE(means->PlaceOf(0, *buffer).has_value());
  EXPECT_FALSE(Written(**counters, place));

  answer = nullptr;
  buffer = means->Renew(0, 12, std::move(buffer));
  EXPECT_EQ(buffer->bytes.data(), shared);
}

TEST(MeanMemoryTest, AnswerMayHoldASharedMeanLongerThanTheShard) {
  auto means = Shared();
  const auto answer = means->Renew(2, 100, nullptr);
  answer->bytes[99] = std::byte{7};

  means = nullptr;

  EXPECT_EQ(answer->bytes[99], std::byte{7});
}

TEST(MeanMemoryTest, PrivateMemoryIsUsedAgainUnlessAnAnswerHoldsIt) {
  MeanMemory means;
  auto buffer = means.Renew(5, 8, nullptr);
  const std::byte* first = buffer->bytes.data();
  buffer = means.Renew(5, 8, std::move(buffer));
  EXPECT_EQ(buffer->bytes.data(), first);
  EXPECT_FALSE(means.PlaceOf(5, *buffer).has_value());
  EXPECT_FALSE(means.files().has_value());

  const auto answer = buffer;
  buffer = means.Renew(5, 8, std::move(buffer));
  EXPECT_NE(buffer->bytes.data(), first);
}

TEST(MeanMemoryTest, PartsOfOtherServersHaveNoSharedMemory) {
  auto means = Shared();
  const auto buffer = means->Renew(1, 40, nullptr);
  EXPECT_EQ(buffer->bytes.size(), 40u);
  EXPECT_FALSE(means->PlaceOf(1, *buffer).has_value());
}

}  // namespace
}  // namespace lockstep::server
