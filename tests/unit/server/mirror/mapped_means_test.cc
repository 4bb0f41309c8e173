#include "server/mirror/mapped_means.h"

#include <cstring>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::SizeIs;

constexpr size_t kSize = 64;

// A server that computes the means of two parts.
class MappedMeansTest : public ::testing::Test {
 protected:
  MappedMeansTest() {
    const size_t sizes[] = {kSize, kSize};
    means_ = MeanMemory::MakeShared(sizes).value();
  }
  void Write(int part, uint8_t value) {
    buffers_[part] = means_->Renew(part, kSize, std::move(buffers_[part]));
    std::memset(buffers_[part]->bytes.data(), value, kSize);
  }
  SharedMeans Describe() const {
    SharedMeans described{
        means_->files()->means, means_->files()->counters, {}};
    for (int part = 0; part < 2; ++part) {
      described.parts.push_back(
          {kSize, *means_->PlaceOf(part, *buffers_[part])});
    }
    return described;
  }

  std::unique_ptr<MeanMemory> means_;
  std::shared_ptr<MeanMemory::Buffer> buffers_[2];
  MappedMeans mapped_{1};
};

TEST_F(MappedMeansTest, ReadsInPlaceUntilTheServerWritesAgain) {
  Write(0, 3);
  Write(1, 4);

  ASSERT_FALSE(mapped_.Maps(0));
  const auto read = mapped_.Read(0, Describe());

  ASSERT_OK(read);
  EXPECT_TRUE(mapped_.Maps(0));
  ASSERT_THAT(*read, SizeIs(2));
  ASSERT_THAT((*read)[1].slices, SizeIs(1));
  EXPECT_EQ((*read)[1].slices[0].size, kSize);
  EXPECT_EQ((*read)[1].slices[0].data[kSize - 1], std::byte{4});
  EXPECT_FALSE((*read)[1].peer_writes->HaveBegun());
  Write(1, 5);
  EXPECT_TRUE((*read)[1].peer_writes->HaveBegun());
  EXPECT_FALSE((*read)[0].peer_writes->HaveBegun());
}

TEST_F(MappedMeansTest, AbsentMeansHaveNoBytes) {
  Write(0, 3);
  Write(1, 4);
  SharedMeans described = Describe();
  described.parts[0].size = 0;

  const auto read = mapped_.Read(0, described);

  ASSERT_OK(read);
  EXPECT_TRUE((*read)[0].absent);
  EXPECT_FALSE((*read)[1].absent);
}

TEST_F(MappedMeansTest, MeansSurviveTheServerAndItsSuccessorIsMapped) {
  Write(0, 3);
  Write(1, 4);
  const auto old = mapped_.Read(0, Describe());
  ASSERT_OK(old);

  const size_t sizes[] = {kSize, kSize};
  buffers_[0] = buffers_[1] = nullptr;
  means_ = MeanMemory::MakeShared(sizes).value();
  Write(0, 30);
  Write(1, 40);
  const auto read = mapped_.Read(0, Describe());

  ASSERT_OK(read);
  EXPECT_EQ((*read)[0].slices[0].data[0], std::byte{30});
  EXPECT_EQ((*old)[0].slices[0].data[0], std::byte{3});
}

TEST_F(MappedMeansTest, PlacesOutsideOfTheMemoryAreRefused) {
  Write(0, 3);
  Write(1, 4);
  const auto refuses = [&](const SharedPlace& place) {
    SharedMeans described = Describe();
    described.parts[1].place = place;
    EXPECT_THAT(mapped_.Read(0, described),
                StatusIs(absl::StatusCode::kInvalidArgument));
  };
  SharedPlace place = Describe().parts[1].place;
  place.offset = uint64_t{1} << 40;
  refuses(place);
  place = Describe().parts[1].place;
  place.offset += 4;  // not at the beginning of a mean
  refuses(place);
  place = Describe().parts[1].place;
  place.counter = -1;
  refuses(place);
  place.counter = 1 << 20;
  refuses(place);
}

TEST_F(MappedMeansTest, ServerWhoseMemoryCannotBeMappedIsRemembered) {
  Write(0, 3);
  Write(1, 4);
  EXPECT_TRUE(mapped_.MayMap(0));
  SharedMeans described = Describe();
  described.means.proof = "another proof!!!";

  EXPECT_THAT(mapped_.Read(0, described),
              StatusIs(absl::StatusCode::kUnavailable));

  EXPECT_FALSE(mapped_.MayMap(0));
  mapped_.OnServerGone(0);
  EXPECT_TRUE(mapped_.MayMap(0));
  EXPECT_OK(mapped_.Read(0, Describe()));
}

}  // namespace
}  // namespace lockstep::server
