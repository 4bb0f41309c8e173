#include "server/mirror/means_codec.h"

#include <cstring>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/wire/tensor_message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/mirror.pb.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

PartGradient MeanOf(std::vector<float> values) {
  auto owner = std::make_shared<std::vector<float>>(std::move(values));
  return {{{reinterpret_cast<const std::byte*>(owner->data()),
            owner->size() * sizeof(float)}},
          owner};
}

std::vector<float> ValuesOf(const PartGradient& mean) {
  std::string bytes;
  for (const ByteSlice& slice : mean.slices) {
    bytes.append(reinterpret_cast<const char*>(slice.data), slice.size);
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Four parts of two elements; part 2 is bfloat16, whose mean is float32.
std::vector<PartSpec> Parts() {
  std::vector<PartSpec> parts(4);
  for (PartSpec& part : parts) part.count = 2;
  parts[2].dtype = DType::kBFloat16;
  return parts;
}

// An answer about parts 1 to 3.
grpc::ByteBuffer AnswerWith(std::vector<int> absent, size_t floats) {
  v1::MeansHeader header;
  for (const int part : absent) header.add_absent(part);
  const grpc::Slice payload(std::string(floats * sizeof(float), '\0'));
  return EncodeTensorMessage(header, absl::MakeConstSpan(&payload, 1));
}

TEST(MeansCodecTest, ReadsWhatItHasWritten) {
  PartGradient absent;
  absent.absent = true;
  std::vector<PartGradient> means;
  means.push_back(MeanOf({1, 2}));
  means.push_back(absent);
  means.push_back(MeanOf({5, 6}));

  const auto answer = DecodeMeans(EncodeMeans(1, means), Parts(), 1, 3);

  ASSERT_OK(answer);
  const auto& read = std::get<std::vector<PartGradient>>(*answer);
  ASSERT_THAT(read, SizeIs(3));
  EXPECT_THAT(ValuesOf(read[0]), ElementsAre(1, 2));
  EXPECT_TRUE(read[1].absent);
  EXPECT_FALSE(read[2].absent);
  EXPECT_THAT(ValuesOf(read[2]), ElementsAre(5, 6));
}

// Parts 0 and 1 are tables of rows of two floats.
std::vector<PartSpec> Tables() {
  std::vector<PartSpec> parts(3);
  for (PartSpec& part : parts) part.count = 8;
  parts[0].row_width = parts[1].row_width = 2;
  return parts;
}

PartGradient RowsOf(std::vector<int64_t> ids, std::vector<float> values) {
  PartGradient mean = MeanOf(std::move(values));
  const auto count = static_cast<int64_t>(ids.size());
  mean.rows = GradientRows{std::move(ids), {count, 2}};
  return mean;
}

TEST(MeansCodecTest, MeansOfTablesHaveTheirRows) {
  for (const bool first_is_absent : {false, true}) {
    std::vector<PartGradient> means = {RowsOf({0, 3}, {1, 2, 3, 4}),
                                       RowsOf({}, {}),
                                       MeanOf({1, 2, 3, 4, 5, 6, 7, 8})};
    if (first_is_absent) {
      means[0] = PartGradient();
      means[0].absent = true;
    }

    const auto answer = DecodeMeans(EncodeMeans(0, means), Tables(), 0, 3);

    ASSERT_OK(answer);
    const auto& read = std::get<std::vector<PartGradient>>(*answer);
    ASSERT_THAT(read, SizeIs(3));
    EXPECT_EQ(read[0].absent, first_is_absent);
    if (!first_is_absent) {
      EXPECT_THAT(read[0].rows->indices, ElementsAre(0, 3));
      EXPECT_THAT(read[0].rows->shape, ElementsAre(2, 2));
      EXPECT_THAT(ValuesOf(read[0]), ElementsAre(1, 2, 3, 4));
    }
    // A table without a row has a mean all the same.
    EXPECT_FALSE(read[1].absent);
    EXPECT_THAT(read[1].rows->shape, ElementsAre(0, 2));
    EXPECT_FALSE(read[2].rows.has_value());
    EXPECT_THAT(ValuesOf(read[2]), SizeIs(8));
  }
}

TEST(MeansCodecTest, RefusesRowsThatDoNotFitTheTables) {
  const auto decode = [](int lists, int ids, size_t floats, bool places) {
    v1::MeansHeader header;
    header.add_absent(2);
    for (int i = 0; i < lists; ++i) {
      header.add_rows();
      for (int id = 0; id < ids; ++id) header.mutable_rows(i)->add_ids(id);
    }
    if (places) header.mutable_means()->set_fd(4);
    const grpc::Slice payload(std::string(floats * sizeof(float), '\0'));
    return DecodeMeans(
        EncodeTensorMessage(header, absl::MakeConstSpan(&payload, 1)), Tables(),
        0, 3);
  };
  EXPECT_OK(decode(2, 1, 4, false));
  EXPECT_THAT(decode(1, 1, 2, false),
              StatusIs(kInvalid, HasSubstr("header.rows has 1 lists")));
  EXPECT_THAT(decode(3, 1, 6, false),
              StatusIs(kInvalid, HasSubstr("header.rows has 3 lists")));
  EXPECT_THAT(decode(2, 9, 4, false),
              StatusIs(kInvalid, HasSubstr("names 9 of 8 bytes")));
  EXPECT_THAT(decode(2, 1, 5, false), StatusIs(kInvalid, HasSubstr("have 16")));
  EXPECT_THAT(decode(2, 1, 4, true), StatusIs(kInvalid, HasSubstr("no place")));
}

TEST(MeansCodecTest, NamesPlacesIfAllMeansHaveOne) {
  PartGradient absent;
  absent.absent = true;
  std::vector<PartGradient> means = {MeanOf({1, 2}), absent, MeanOf({5, 6})};
  means[0].place = SharedPlace{4096, 1, 7};
  means[2].place = SharedPlace{4160, 3, 8};
  const MeanMemory::Files files = {{.pid = 10, .fd = 4}, {.pid = 10, .fd = 5}};

  const auto answer = DecodeMeans(EncodeMeans(1, means, files), Parts(), 1, 3);

  ASSERT_OK(answer);
  const auto& shared = std::get<SharedMeans>(*answer);
  EXPECT_EQ(shared.means.fd, 4);
  EXPECT_EQ(shared.counters.fd, 5);
  ASSERT_THAT(shared.parts, SizeIs(3));
  EXPECT_EQ(shared.parts[0].size, 8u);
  EXPECT_EQ(shared.parts[0].place.offset, 4096u);
  EXPECT_EQ(shared.parts[1].size, 0u);
  EXPECT_EQ(shared.parts[2].size, 8u);
  EXPECT_EQ(shared.parts[2].place.counter, 3);
  EXPECT_EQ(shared.parts[2].place.writes, 8u);

  means[2].place.reset();
  EXPECT_TRUE(std::holds_alternative<std::vector<PartGradient>>(
      DecodeMeans(EncodeMeans(1, means, files), Parts(), 1, 3).value()));
}

TEST(MeansCodecTest, RefusesAnotherNumberOfPlaces) {
  for (const int places : {0, 1, 3}) {
    v1::MeansHeader header;
    header.add_absent(2);
    header.mutable_means()->set_fd(4);
    for (int i = 0; i < places; ++i) header.add_places();
    EXPECT_THAT(DecodeMeans(EncodeTensorMessage(header, {}), Parts(), 1, 3),
                StatusIs(kInvalid, HasSubstr("each of the 2 parts")));
  }
}

TEST(MeansCodecTest, RefusesAPayloadOfAnotherLength) {
  for (const size_t floats : {0, 5, 7}) {
    EXPECT_THAT(DecodeMeans(AnswerWith({}, floats), Parts(), 1, 3),
                StatusIs(kInvalid, HasSubstr("have 24")));
  }
}

TEST(MeansCodecTest, RefusesAbsentPartsThatWereNotAskedForOrDoNotAscend) {
  for (const std::vector<int>& absent :
       std::vector<std::vector<int>>{{0}, {4}, {-1}, {2, 2}, {3, 1}}) {
    EXPECT_THAT(DecodeMeans(AnswerWith(absent, 6), Parts(), 1, 3),
                StatusIs(kInvalid, HasSubstr("must ascend")));
  }
}

TEST(MeansCodecTest, RefusesBytesThatAreNoAnswer) {
  const grpc::Slice bytes(std::string("\x0a\xff"));
  EXPECT_THAT(DecodeMeans(grpc::ByteBuffer(&bytes, 1), Parts(), 1, 3),
              StatusIs(kInvalid, HasSubstr("is cut off")));
}

}  // namespace
}  // namespace lockstep::server
