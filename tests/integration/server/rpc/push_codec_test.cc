#include "server/rpc/push_codec.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

class PushCodecTest : public ::testing::Test {
 protected:
  PushCodecTest() {
    shard_.Open();
    auto opened = shard_.host().shard();
    EXPECT_OK(opened);
    if (opened.ok()) opened_ = *opened;
    std::string& payload = *request_.mutable_payload();
    for (size_t i = 0; i < payload.size(); ++i) payload[i] = char(i);
  }

  // The request in slices of `size` bytes, decoded.
  absl::StatusOr<server::Push> ToPushInSlices(size_t size) {
    const std::string bytes = request_.SerializeAsString();
    std::vector<grpc::Slice> slices;
    for (size_t i = 0; i < bytes.size(); i += size) {
      slices.emplace_back(bytes.substr(i, size));
    }
    const grpc::ByteBuffer buffer(slices.data(), slices.size());
    v1::PushHeader header;
    TensorPayload payload;
    EXPECT_OK(DecodeTensorMessage(buffer, header, payload));
    return server::ToPush(header, payload, *opened_);
  }
  absl::Status Status() { return ToPushInSlices(1000).status(); }

  ServedShard shard_;
  std::shared_ptr<server::Shard> opened_;
  v1::PushRequest request_ = ServedShard::PushRequest(3, 2, 0);
};

std::string Bytes(const server::PartGradient& gradient) {
  std::string bytes;
  for (const server::ByteSlice& slice : gradient.slices) {
    bytes.append(reinterpret_cast<const char*>(slice.data), slice.size);
  }
  return bytes;
}

TEST_F(PushCodecTest, PartsAreCutOutWhereverSlicesEnd) {
  const size_t size = request_.SerializeAsString().size();
  const std::string& payload = request_.payload();

  for (size_t slice = 1; slice <= size; ++slice) {
    auto push = ToPushInSlices(slice);
    ASSERT_OK(push);
    ASSERT_EQ(push->gradients.size(), 3u);
    for (size_t part = 0; part < 3; ++part) {
      ASSERT_EQ(Bytes(push->gradients[part]), payload.substr(16 * part, 16))
          << "part " << part << ", slices of " << slice;
    }
  }
}

TEST_F(PushCodecTest, BFloat16PartsAreHalfAsLong) {
  request_.mutable_header()->set_gradient_type(v1::BFLOAT16);
  request_.mutable_header()->mutable_parts()->set_num_parts(2);
  request_.mutable_payload()->resize(16);
  const size_t size = request_.SerializeAsString().size();

  for (size_t slice = 1; slice <= size; ++slice) {
    auto push = ToPushInSlices(slice);
    ASSERT_OK(push);
    ASSERT_EQ(push->gradients.size(), 2u);
    for (size_t part = 0; part < 2; ++part) {
      EXPECT_EQ(push->gradients[part].type, GradientType::kBFloat16);
      ASSERT_EQ(Bytes(push->gradients[part]),
                request_.payload().substr(8 * part, 8));
    }
  }
}

TEST_F(PushCodecTest, GradientsKeepTheSlicesThatTheyLieIn) {
  auto push = ToPushInSlices(1000);
  ASSERT_OK(push);
  const server::PartGradient last = push->gradients[2];
  const auto* begin = push->gradients[0].slices[0].data;

  push = absl::CancelledError();

  EXPECT_EQ(last.slices[0].data, begin + 32);  // nothing was copied
  EXPECT_EQ(Bytes(last), request_.payload().substr(32));
}

TEST_F(PushCodecTest, HeaderSaysWhoseGradientItIs) {
  request_.mutable_header()->mutable_parts()->set_first_part(1);
  request_.mutable_header()->mutable_parts()->set_num_parts(2);
  request_.mutable_payload()->resize(32);
  *request_.mutable_header()->mutable_identity() = ServedShard::Worker(1, 9);

  auto push = ToPushInSlices(1000);

  ASSERT_OK(push);
  EXPECT_EQ(push->pass.worker, 1);
  EXPECT_EQ(push->pass.incarnation, 9u);
  EXPECT_EQ(push->pass.local_step, 3);
  EXPECT_EQ(push->pass.pass, 4);
  EXPECT_EQ(push->attempt, 2);
  EXPECT_EQ(push->first_part, 1);
  EXPECT_EQ(push->gradients.size(), 2u);
}

TEST_F(PushCodecTest, PartsThatTheShardDoesNotHaveAreRefused) {
  v1::PartRange& parts = *request_.mutable_header()->mutable_parts();
  parts.set_num_parts(4);
  EXPECT_THAT(Status(), StatusIs(kInvalid, HasSubstr("3 parts")));
  parts.set_first_part(std::numeric_limits<int32_t>::max());
  parts.set_num_parts(std::numeric_limits<int32_t>::max());
  EXPECT_THAT(Status(), StatusIs(kInvalid, HasSubstr("3 parts")));
  parts.set_first_part(0);
  parts.set_num_parts(-1);
  EXPECT_THAT(Status(), StatusIs(kInvalid, HasSubstr("3 parts")));
}

TEST_F(PushCodecTest, PayloadOfAnotherLengthIsRefused) {
  request_.mutable_payload()->pop_back();
  EXPECT_THAT(Status(), StatusIs(kInvalid, HasSubstr("payload has 47 bytes")));
  request_.clear_payload();
  EXPECT_THAT(Status(), StatusIs(kInvalid, HasSubstr("payload has 0 bytes")));
}

TEST_F(PushCodecTest, PassesCountFromOne) {
  request_.mutable_header()->set_pass(0);
  EXPECT_THAT(Status(), StatusIs(kInvalid, HasSubstr("pass is 0")));
}

TEST_F(PushCodecTest, AnswerHasOneOutcomeForEachPart) {
  const grpc::ByteBuffer buffer = server::EncodePushAnswer(
      {7,
       {server::PushOutcome::kAccepted, server::PushOutcome::kStale,
        server::PushOutcome::kDuplicate, server::PushOutcome::kSuperseded},
       12,
       absl::OkStatus()});
  v1::PushResponse response;

  ASSERT_OK(DecodeMessage(buffer, response));

  EXPECT_THAT(
      response.header().outcomes(),
      ElementsAre(v1::ACCEPTED, v1::STALE, v1::DUPLICATE, v1::SUPERSEDED));
  EXPECT_EQ(response.header().server_step(), 12);
}

TEST_F(PushCodecTest, ValuesFollowTheHeaderInOrderAndAreLetGoOnceSent) {
  auto large = std::make_shared<std::string>(10000, 'l');
  auto small = std::make_shared<std::string>("small");
  const auto lent = [](const std::shared_ptr<std::string>& text) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text->data());
    return server::LentBytes{{bytes, text->size()}, text};
  };
  server::PushAnswer answer;
  answer.values = {lent(small), lent(large), lent(small), lent(small)};

  grpc::ByteBuffer buffer = server::EncodePushAnswer(std::move(answer));
  v1::PushResponse response;
  ASSERT_OK(DecodeMessage(buffer, response));

  EXPECT_EQ(response.payload(), *small + *large + *small + *small);
  EXPECT_EQ(small.use_count(), 1);
  EXPECT_EQ(large.use_count(), 2);
  buffer.Clear();
  EXPECT_EQ(large.use_count(), 1);
}

TEST_F(PushCodecTest, SharedValuesAreNamedAndNotKept) {
  auto owner = std::make_shared<std::string>("value");
  server::PushAnswer answer;
  answer.values = {{{}, owner, {4096, 1, 7}}, {{}, owner, {8192, 3, 9}}};

  const grpc::ByteBuffer buffer =
      server::EncodePushAnswer(std::move(answer), /*shared=*/true);
  v1::PushResponse response;
  ASSERT_OK(DecodeMessage(buffer, response));

  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(response.payload(), "");
  ASSERT_EQ(response.header().values_size(), 2);
  EXPECT_EQ(response.header().values(0).offset(), 4096u);
  EXPECT_EQ(response.header().values(1).counter(), 3u);
  EXPECT_EQ(response.header().values(1).writes(), 9u);
}

TEST_F(PushCodecTest, AbsentPartsHaveNoBytes) {
  request_.mutable_header()->add_absent(1);
  request_.mutable_payload()->resize(32);
  const size_t size = request_.SerializeAsString().size();

  for (size_t slice = 1; slice <= size; ++slice) {
    auto push = ToPushInSlices(slice);
    ASSERT_OK(push);
    ASSERT_EQ(push->gradients.size(), 3u);
    EXPECT_FALSE(push->gradients[0].absent);
    EXPECT_TRUE(push->gradients[1].absent);
    EXPECT_EQ(Bytes(push->gradients[0]), request_.payload().substr(0, 16));
    EXPECT_EQ(Bytes(push->gradients[1]), "");
    EXPECT_EQ(Bytes(push->gradients[2]), request_.payload().substr(16));
  }
}

TEST_F(PushCodecTest, AllPartsMayBeAbsent) {
  for (int part : {0, 1, 2}) request_.mutable_header()->add_absent(part);
  EXPECT_THAT(Status(), StatusIs(kInvalid, HasSubstr("without the absent")));
  request_.clear_payload();

  EXPECT_OK(ToPushInSlices(1000));
}

TEST_F(PushCodecTest, AbsentPartsThatThePushDoesNotHaveAreRefused) {
  request_.mutable_header()->mutable_parts()->set_first_part(1);
  request_.mutable_header()->mutable_parts()->set_num_parts(1);
  request_.clear_payload();
  v1::PushHeader& header = *request_.mutable_header();
  constexpr int kLargest = std::numeric_limits<int32_t>::max();
  for (const std::vector<int>& bad : std::vector<std::vector<int>>{
           {0}, {2}, {-1}, {1, 1}, {1, 2}, {kLargest}, {-kLargest - 1}}) {
    header.mutable_absent()->Assign(bad.begin(), bad.end());
    EXPECT_THAT(Status(), StatusIs(kInvalid, HasSubstr("header.absent has")));
  }
  header.mutable_absent()->Clear();
  header.add_absent(1);
  EXPECT_OK(Status());
}

}  // namespace
}  // namespace lockstep::testing
