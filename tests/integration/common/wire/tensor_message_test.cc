#include "common/wire/tensor_message.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/parameter.pb.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

v1::PushRequest Request() {
  v1::PushRequest request;
  request.mutable_header()->set_local_step(7);
  request.mutable_header()->mutable_identity()->set_job_id("job");
  for (int i = 0; i < 1000; ++i) request.mutable_payload()->push_back(i % 251);
  return request;
}

// Cuts `bytes` into slices of `size`; the last one may be smaller.
grpc::ByteBuffer Cut(const std::string& bytes, size_t size) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += size) {
    slices.emplace_back(bytes.substr(i, size));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer Whole(const std::string& bytes) {
  return Cut(bytes, bytes.size());
}

std::string Flat(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

std::string Bytes(const TensorPayload& payload) {
  std::string bytes(payload.size, '\0');
  payload.CopyTo(bytes.data());
  return bytes;
}

absl::Status Decode(const grpc::ByteBuffer& buffer) {
  v1::PushHeader header;
  TensorPayload payload;
  return DecodeTensorMessage(buffer, header, payload);
}

TEST(GrpcTensorCodecTest, OrdinaryMessageIsReadHoweverItIsCut) {
  const v1::PushRequest request = Request();
  const std::string bytes = request.SerializeAsString();

  for (size_t size = 1; size <= bytes.size(); ++size) {
    v1::PushHeader header;
    TensorPayload payload;
    ASSERT_OK(DecodeTensorMessage(Cut(bytes, size), header, payload));
    EXPECT_EQ(header.local_step(), 7);
    ASSERT_EQ(Bytes(payload), request.payload()) << "slices of " << size;
  }
}

TEST(GrpcTensorCodecTest, EmptySlicesAreSkipped) {
  const v1::PushRequest request = Request();
  const std::string bytes = request.SerializeAsString();
  std::vector<grpc::Slice> slices(2);
  for (size_t i = 0; i < bytes.size(); i += 100) {
    slices.emplace_back(bytes.substr(i, 100));
    slices.resize(slices.size() + 2);
  }
  v1::PushHeader header;
  TensorPayload payload;

  ASSERT_OK(DecodeTensorMessage(grpc::ByteBuffer(slices.data(), slices.size()),
                                header, payload));

  EXPECT_EQ(header.local_step(), 7);
  EXPECT_EQ(Bytes(payload), request.payload());
}

TEST(GrpcTensorCodecTest, PayloadThatSharesASliceOutlivesTheBuffer) {
  const v1::PushRequest request = Request();
  v1::PushHeader header;
  TensorPayload payload;
  {
    // The first slice holds the header and the start of the payload.
    const grpc::ByteBuffer buffer = Cut(request.SerializeAsString(), 700);
    ASSERT_OK(DecodeTensorMessage(buffer, header, payload));
  }

  EXPECT_EQ(payload.slices.size(), 2u);
  EXPECT_EQ(Bytes(payload), request.payload());
}

TEST(GrpcTensorCodecTest, HeadersThatAreRepeatedAreMerged) {
  v1::PushRequest first;
  first.mutable_header()->set_local_step(7);
  v1::PushRequest second;
  second.mutable_header()->set_attempt(2);
  v1::PushHeader header;
  TensorPayload payload;

  ASSERT_OK(DecodeTensorMessage(
      Whole(first.SerializeAsString() + second.SerializeAsString()), header,
      payload));

  EXPECT_EQ(header.local_step(), 7);
  EXPECT_EQ(header.attempt(), 2);
}

TEST(GrpcTensorCodecTest, OrdinaryCodeReadsWhatIsWritten) {
  const v1::PushRequest request = Request();
  const std::string& payload = request.payload();
  const grpc::Slice pieces[] = {grpc::Slice(payload.substr(0, 300)),
                                grpc::Slice(std::string()),
                                grpc::Slice(payload.substr(300))};

  const std::string bytes = Flat(EncodeTensorMessage(request.header(), pieces));

  v1::PushRequest read;
  ASSERT_TRUE(read.ParseFromString(bytes));
  EXPECT_EQ(read.payload(), payload);
  EXPECT_EQ(read.header().identity().job_id(), "job");
}

TEST(GrpcTensorCodecTest, PayloadIsNotCopied) {
  const std::string memory(100, 'x');
  const grpc::Slice slice = UnownedSlice(memory.data(), memory.size());
  const grpc::ByteBuffer buffer =
      EncodeTensorMessage(v1::PushHeader(), absl::MakeConstSpan(&slice, 1));
  v1::PushHeader header;
  TensorPayload payload;

  ASSERT_OK(DecodeTensorMessage(buffer, header, payload));

  ASSERT_EQ(payload.slices.size(), 1u);
  EXPECT_EQ(payload.slices[0].begin(),
            reinterpret_cast<const uint8_t*>(memory.data()));
}

TEST(GrpcTensorCodecTest, MissingFieldsAreEmptyOnes) {
  v1::PushRequest no_header = Request();
  no_header.clear_header();
  v1::PushRequest no_payload = Request();
  no_payload.clear_payload();
  v1::PushHeader header;
  TensorPayload payload;

  ASSERT_OK(DecodeTensorMessage(Whole(no_header.SerializeAsString()), header,
                                payload));
  EXPECT_EQ(header.local_step(), 0);
  EXPECT_EQ(payload.size, 1000u);
  ASSERT_OK(DecodeTensorMessage(Whole(no_payload.SerializeAsString()), header,
                                payload));
  EXPECT_EQ(header.local_step(), 7);
  EXPECT_EQ(payload.size, 0u);
  ASSERT_OK(DecodeTensorMessage(grpc::ByteBuffer(), header, payload));
  EXPECT_EQ(header.local_step(), 0);
}

TEST(GrpcTensorCodecTest, TruncatedPayloadIsRefusedWhereverItEnds) {
  const std::string bytes = Request().SerializeAsString();
  const size_t payload_begins = bytes.size() - 1000;

  for (size_t length = payload_begins; length < bytes.size(); ++length) {
    EXPECT_THAT(Decode(Whole(bytes.substr(0, length))), StatusIs(kInvalid));
    EXPECT_THAT(Decode(Cut(bytes.substr(0, length), 7)), StatusIs(kInvalid));
  }
}

TEST(GrpcTensorCodecTest, PayloadMustComeLast) {
  v1::PushRequest payload = Request();
  payload.clear_header();
  v1::PushRequest header = Request();
  header.clear_payload();

  EXPECT_THAT(
      Decode(Whole(payload.SerializeAsString() + header.SerializeAsString())),
      StatusIs(kInvalid, HasSubstr("not last")));
}

TEST(GrpcTensorCodecTest, HeaderThatIsNoneIsRefused) {
  EXPECT_THAT(Decode(Whole(std::string("\x0a\x02\xff\xff", 4))),
              StatusIs(kInvalid, HasSubstr("PushHeader")));
}

// A push names each row by a key of up to ten bytes.
TEST(GrpcTensorCodecTest, HeaderIsAsLongAsItsRowsNeed) {
  constexpr int kRows = 300'000;
  v1::PushRequest request = Request();
  v1::RowIds& rows = *request.mutable_header()->add_rows();
  for (int row = 0; row < kRows; ++row) rows.add_ids((int64_t{1} << 62) + row);
  const std::string bytes = request.SerializeAsString();

  for (size_t size : {size_t{8191}, size_t{1} << 20, bytes.size()}) {
    v1::PushHeader header;
    TensorPayload payload;
    ASSERT_OK(DecodeTensorMessage(Cut(bytes, size), header, payload));
    ASSERT_EQ(header.rows(0).ids_size(), kRows);
    EXPECT_EQ(header.rows(0).ids(kRows - 1), (int64_t{1} << 62) + kRows - 1);
    EXPECT_EQ(Bytes(payload), request.payload());
  }
}

TEST(GrpcTensorCodecTest, HeaderThatPromisesMoreThanHasComeIsRefused) {
  const std::string header = Request().header().SerializeAsString();
  const auto promised = static_cast<char>(header.size() + 1);

  EXPECT_THAT(Decode(Whole(std::string("\x0a") + promised + header)),
              StatusIs(kInvalid, HasSubstr("is cut off; at most")));
  EXPECT_THAT(Decode(Whole("\x0a\xff\xff\xff\xff\x07" + header)),
              StatusIs(kInvalid, HasSubstr("header of 2147483647 bytes")));
}

// A parser that continues in the next slice must be able to go back.
TEST(GrpcTensorCodecTest, BrokenHeaderIsRefusedWhereverSlicesEnd) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string bytes =
        Request().SerializeAsString().substr(0, 40 + random() % 10);
    for (int change = 0; change < 3; ++change) {
      bytes[2 + random() % (bytes.size() - 2)] = static_cast<char>(random());
    }
    // All bytes belong to the header.
    bytes[1] = static_cast<char>(bytes.size() - 2);
    const absl::StatusCode whole = Decode(Whole(bytes)).code();
    for (size_t size = 1; size < bytes.size(); ++size) {
      EXPECT_EQ(Decode(Cut(bytes, size)).code(), whole) << i << " " << size;
    }
  }
}

TEST(GrpcTensorCodecTest, UnknownFieldsAndEndlessNumbersAreRefused) {
  EXPECT_THAT(Decode(Whole("\x1a\x01x")),
              StatusIs(kInvalid, HasSubstr("unknown field")));
  EXPECT_THAT(Decode(Whole(std::string(11, '\x80'))),
              StatusIs(kInvalid, HasSubstr("longer than ten bytes")));
  EXPECT_THAT(Decode(Whole("\x12\x80")),
              StatusIs(kInvalid, HasSubstr("cut off")));
}

TEST(GrpcTensorCodecTest, LengthThatOverflowsIsRefused) {
  const std::string length("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);

  EXPECT_THAT(Decode(Whole("\x12" + length + "abc")), StatusIs(kInvalid));
  EXPECT_THAT(Decode(Whole("\x0a" + length + "abc")), StatusIs(kInvalid));
}

TEST(GrpcTensorCodecTest, PlainMessagesTravelHoweverTheyAreCut) {
  const v1::PushHeader header = Request().header();
  const std::string bytes = Flat(EncodeMessage(header));

  for (size_t size = 1; size <= bytes.size(); ++size) {
    v1::PushHeader read;
    ASSERT_OK(DecodeMessage(Cut(bytes, size), read));
    EXPECT_EQ(read.identity().job_id(), "job");
  }
  v1::PushHeader read;
  EXPECT_THAT(DecodeMessage(Whole("\xff\xff"), read), StatusIs(kInvalid));
  EXPECT_THAT(DecodeMessage(grpc::ByteBuffer(), read), StatusIs(kInvalid));
}

}  // namespace
}  // namespace lockstep::testing
