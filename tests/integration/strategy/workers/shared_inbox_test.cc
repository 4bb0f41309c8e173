#include "strategy/workers/shared_inbox.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/workers/shared_outbox.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

// Rank 1 gives parcels, in memory of this process.
class SharedInboxTest : public ::testing::Test {
 protected:
  v1::ParcelHeader HeaderOf(const std::vector<Leaf>& leaves) {
    const auto parcel = std::make_shared<const std::vector<Leaf>>(leaves);
    EXPECT_TRUE(outbox_.Begin(PayloadSize(leaves)));
    v1::ParcelHeader header;
    header.mutable_sender()->set_rank(1);
    EncodeLeaves(leaves, header);
    *header.mutable_shared() = outbox_.Place(parcel);
    return header;
  }
  absl::StatusOr<std::vector<Leaf>> Read(const v1::ParcelHeader& header) {
    absl::StatusOr<ParcelReader> reader = ParcelReader::Make(header);
    EXPECT_OK(reader);
    const absl::Status read = inbox_.Read(header, *reader);
    if (!read.ok()) return read;
    return reader->Finish();
  }

  SharedOutbox outbox_;
  SharedInbox inbox_;
};

TEST_F(SharedInboxTest, ReadsThePayloadsOfEachExchange) {
  for (const int64_t rows : {2, 1, 3000}) {
    const std::vector<Leaf> leaves = {
        Slices{std::vector<int64_t>(rows, 7),
               *Value::Zeros(ElementType::kFloat32, {rows, 2}),
               {}},
        Value::Scalar(static_cast<float>(rows))};
    const auto read = Read(HeaderOf(leaves));
    ASSERT_OK(read);
    EXPECT_EQ(*read, leaves);
  }
}

TEST_F(SharedInboxTest, MemoryThatCannotBeMappedMeansThatThePayloadIsToCome) {
  v1::ParcelHeader header = HeaderOf({Value::Scalar(1)});
  header.mutable_shared()->mutable_file()->set_pid(1);
  EXPECT_THAT(Read(header).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("cannot map")));
  header = HeaderOf({Value::Scalar(2)});
  EXPECT_OK(Read(header));
}

TEST_F(SharedInboxTest, PayloadsEndWithTheMemory) {
  v1::ParcelHeader header = HeaderOf({Value::Scalar(1)});
  for (const uint64_t offset :
       {header.shared().offset() + 1, uint64_t{1} << 63, ~uint64_t{0}}) {
    header.mutable_shared()->set_offset(offset);
    EXPECT_THAT(Read(header).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not in the memory of rank 1")));
  }
  // Claims more than any memory has.
  header = HeaderOf({Value::Scalar(1)});
  for (int i = 0; i < 3; ++i) {
    v1::LeafHeader& leaf = *header.add_leaves();
    leaf.set_type("float32");
    leaf.add_shape(int64_t{1} << 37);
  }
  EXPECT_THAT(Read(header).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not in the memory")));
}

}  // namespace
}  // namespace lockstep::strategy
