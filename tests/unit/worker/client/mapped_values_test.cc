#include "worker/client/mapped_values.h"

#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "common/memory/write_counters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;

constexpr size_t kHeader = SharedMemory::kHeaderSize;
constexpr size_t kSize = size_t{1} << 20;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

class MappedValuesTest : public ::testing::Test {
 protected:
  MappedValuesTest() {
    auto memory = SharedMemory::Create("test", kSize);
    auto counters = WriteCounters::Create(2);
    EXPECT_OK(memory);
    EXPECT_OK(counters);
    memory_ = *std::move(memory);
    counters_ = *std::move(counters);
    for (size_t i = 0; i < kSize; ++i) {
      memory_->bytes()[i] = static_cast<std::byte>(i * i >> 3);
    }
    auto values = MappedValues::Open(memory_->file(), counters_->file());
    EXPECT_OK(values);
    if (values.ok()) values_ = *std::move(values);
  }

  absl::Status Copy(const SharedPlace& place, size_t size) {
    std::vector<std::byte> out(size);
    return values_->Copy(place, absl::MakeSpan(out));
  }

  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<WriteCounters> counters_;
  std::optional<MappedValues> values_;
};

// Large ones are copied another way than small ones, and their ends lie
// anywhere in a cache line.
TEST_F(MappedValuesTest, EveryByteIsCopiedAndNoOther) {
  for (const size_t size : {1, 63, 4096, 262143, 262144, 262145, 300000}) {
    for (const size_t from : {0, 4, 33}) {
      for (const size_t to : {0, 4, 61}) {
        std::vector<std::byte> out(to + size + 64, std::byte{1});

        ASSERT_OK(values_->Copy({kHeader + from, 0, 0},
                                absl::MakeSpan(out).subspan(to, size)));

        ASSERT_EQ(
            std::memcmp(out.data() + to, memory_->bytes().data() + from, size),
            0)
            << size << " bytes from " << from << " to " << to;
        for (size_t i = 0; i < to; ++i) ASSERT_EQ(out[i], std::byte{1});
        for (size_t i = to + size; i < out.size(); ++i) {
          ASSERT_EQ(out[i], std::byte{1});
        }
      }
    }
  }
}

TEST_F(MappedValuesTest, ValuesBeingOverwrittenAreNotTaken) {
  const SharedPlace told = {kHeader, 1, counters_->Count(1)};
  EXPECT_OK(Copy(told, 100));

  counters_->Begin(1);

  EXPECT_THAT(Copy(told, 100), StatusIs(absl::StatusCode::kAborted));
  EXPECT_OK(Copy({kHeader, 0, 0}, 100));
}

TEST_F(MappedValuesTest, PlacesOutsideTheMemoryAreRefused) {
  EXPECT_OK(Copy({kHeader + kSize - 8, 0, 0}, 8));

  EXPECT_THAT(Copy({kHeader + kSize - 7, 0, 0}, 8), StatusIs(kInvalid));
  EXPECT_THAT(Copy({std::numeric_limits<uint64_t>::max() - 3, 0, 0}, 8),
              StatusIs(kInvalid));
  EXPECT_THAT(Copy({kHeader, 2, 0}, 8), StatusIs(kInvalid));
  EXPECT_THAT(Copy({kHeader, -1, 0}, 8), StatusIs(kInvalid));
}

TEST_F(MappedValuesTest, ValuesStayReadableWhenTheServerIsGone) {
  memory_.reset();
  counters_.reset();

  EXPECT_OK(Copy({kHeader, 0, 0}, kSize));
}

TEST_F(MappedValuesTest, ProcessesThatCannotBeSeenAreRefused) {
  SharedFile elsewhere = memory_->file();
  elsewhere.fd = 1000000;
  const auto not_found = StatusIs(absl::StatusCode::kNotFound);

  EXPECT_THAT(MappedValues::Open(elsewhere, counters_->file()).status(),
              not_found);
  EXPECT_THAT(MappedValues::Open(memory_->file(), elsewhere).status(),
              not_found);
  elsewhere = memory_->file();
  elsewhere.pid += 1;
  EXPECT_THAT(MappedValues::Open(elsewhere, counters_->file()).status(),
              StatusIs(kInvalid));
}

}  // namespace
}  // namespace lockstep::worker
