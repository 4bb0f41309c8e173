#include "server/shard/shared_gradients.h"

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr size_t kHeader = SharedMemory::kHeaderSize;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// A server with parts of 4 and 8 bytes; a worker's memory holds
// "........BBBBBBBBAAAA", part 1 before part 0.
class SharedGradientsTest : public ::testing::Test {
 protected:
  SharedGradientsTest() {
    auto memory = SharedMemory::Create("test", 20);
    EXPECT_OK(memory);
    memory_ = *std::move(memory);
    std::memcpy(memory_->bytes().data(), "........BBBBBBBBAAAA", 20);
    auto peer = PeerMemory::Open(memory_->file(), PeerMemory::Require::kSealed);
    EXPECT_OK(peer);
    peer_ = *std::move(peer);
  }

  absl::Status Add(int worker, uint64_t incarnation) {
    return gradients_.Add(worker, incarnation, peer_, offsets_);
  }
  absl::Status Find(int worker, uint64_t incarnation) const {
    return gradients_.Find(worker, incarnation, 0, 2).status();
  }
  static std::string Text(const PartGradient& gradient) {
    std::string text;
    for (const ByteSlice& slice : gradient.slices) {
      text.append(reinterpret_cast<const char*>(slice.data), slice.size);
    }
    return text;
  }

  std::unique_ptr<SharedMemory> memory_;
  std::shared_ptr<const PeerMemory> peer_;
  std::vector<uint64_t> offsets_ = {kHeader + 16, kHeader + 8};
  SharedGradients gradients_{{{4, 4}, {8, 4}}};
};

constexpr auto kNotFound = absl::StatusCode::kNotFound;

TEST_F(SharedGradientsTest, GradientsAreFoundWhereTheyAre) {
  ASSERT_OK(Add(3, 1));

  auto both = gradients_.Find(3, 1, 0, 2);
  auto second = gradients_.Find(3, 1, 1, 1);

  ASSERT_OK(both);
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ(Text((*both)[0]), "AAAA");
  EXPECT_EQ(Text((*both)[1]), "BBBBBBBB");
  ASSERT_OK(second);
  EXPECT_EQ(Text((*second)[0]), "BBBBBBBB");
}

TEST_F(SharedGradientsTest, WorkerThatSharesNoMemoryIsNotFound) {
  ASSERT_OK(Add(3, 5));

  EXPECT_THAT(Find(2, 5), StatusIs(kNotFound, HasSubstr("worker 2")));
  EXPECT_THAT(Find(3, 4), StatusIs(kNotFound));
  EXPECT_THAT(Find(3, 6), StatusIs(kNotFound));
}

TEST_F(SharedGradientsTest, NewerIncarnationReplacesTheOlderOne) {
  ASSERT_OK(Add(3, 5));
  ASSERT_OK(Add(3, 6));

  EXPECT_THAT(Add(3, 5), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("replaced by 6")));

  EXPECT_THAT(Find(3, 5), StatusIs(kNotFound));
  EXPECT_OK(Find(3, 6));
}

TEST_F(SharedGradientsTest, RemovingDoesNotTouchANewerIncarnation) {
  ASSERT_OK(Add(3, 5));

  gradients_.Remove(3, 4);
  gradients_.Remove(2, 9);
  EXPECT_OK(Find(3, 5));
  gradients_.Remove(3, 5);

  EXPECT_THAT(Find(3, 5), StatusIs(kNotFound));
}

TEST_F(SharedGradientsTest, GradientsInUseOutliveTheirWorker) {
  ASSERT_OK(Add(3, 5));
  auto found = gradients_.Find(3, 5, 0, 1);
  ASSERT_OK(found);

  gradients_.Remove(3, 5);
  memory_.reset();
  peer_.reset();

  EXPECT_EQ(Text((*found)[0]), "AAAA");
}

TEST_F(SharedGradientsTest, PartsOutsideTheMemoryAreRefused) {
  ASSERT_OK(Add(3, 5));
  const std::vector<uint64_t> valid = offsets_;
  for (const uint64_t offset : {uint64_t{kHeader + 17}, uint64_t{kHeader + 20},
                                std::numeric_limits<uint64_t>::max(),
                                std::numeric_limits<uint64_t>::max() - 2}) {
    offsets_ = {offset, kHeader};
    EXPECT_THAT(Add(3, 6), StatusIs(kInvalid, HasSubstr("offsets[0]")));
  }

  EXPECT_OK(Find(3, 5));
  EXPECT_THAT(Find(3, 6), StatusIs(kNotFound));
}

TEST_F(SharedGradientsTest, EveryPartNeedsAnOffset) {
  offsets_.pop_back();
  EXPECT_THAT(Add(3, 5), StatusIs(kInvalid, HasSubstr("1 given for 2 parts")));
  offsets_.clear();
  EXPECT_THAT(Add(3, 5), StatusIs(kInvalid));
  offsets_.assign(3, kHeader);
  EXPECT_THAT(Add(3, 5), StatusIs(kInvalid));
}

}  // namespace
}  // namespace lockstep::server
