#include "server/update/gradient_slices.h"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

ByteSlice Slice(const std::string& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

std::string Text(const std::byte* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

TEST(GradientSlicesTest, TotalSizeCountsAllSlices) {
  const std::string three = "abc";
  const std::string empty;
  const std::vector<ByteSlice> slices = {Slice(three), Slice(empty),
                                         Slice(three)};

  EXPECT_EQ(TotalSize(slices), 6u);
  EXPECT_EQ(TotalSize({}), 0u);
}

TEST(GradientReaderTest, BytesOfOneSliceAreReadInPlace) {
  const std::string bytes = "abcdefgh";
  const std::vector<ByteSlice> slices = {Slice(bytes)};
  std::array<std::byte, 4> scratch;
  GradientReader reader(slices);

  const std::byte* first = reader.Next(4, scratch.data());
  const std::byte* second = reader.Next(4, scratch.data());

  EXPECT_EQ(first, slices[0].data);
  EXPECT_EQ(second, slices[0].data + 4);
}

TEST(GradientReaderTest, BytesThatStraddleSlicesAreGathered) {
  const std::string a = "abcde";
  const std::string b = "f";
  const std::string c = "ghij";
  const std::vector<ByteSlice> slices = {Slice(a), Slice(b), Slice(c)};
  std::array<std::byte, 4> scratch;
  GradientReader reader(slices);

  EXPECT_EQ(Text(reader.Next(4, scratch.data()), 4), "abcd");
  EXPECT_EQ(Text(reader.Next(4, scratch.data()), 4), "efgh");
  EXPECT_EQ(Text(reader.Next(2, scratch.data()), 2), "ij");
}

TEST(GradientReaderTest, EmptySlicesAreSkipped) {
  const std::string empty;
  const std::string a = "ab";
  const std::string b = "cdef";
  const std::vector<ByteSlice> slices = {Slice(empty), Slice(a), ByteSlice{},
                                         Slice(empty), Slice(b), ByteSlice{}};
  std::array<std::byte, 4> scratch;
  GradientReader reader(slices);

  EXPECT_EQ(Text(reader.Next(4, scratch.data()), 4), "abcd");
  EXPECT_EQ(Text(reader.Next(2, scratch.data()), 2), "ef");
}

TEST(GradientReaderTest, AnyCutYieldsTheSameBytes) {
  const std::string bytes = "0123456789";
  std::array<std::byte, 5> scratch;
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const std::string head = bytes.substr(0, cut);
    const std::string tail = bytes.substr(cut);
    const std::vector<ByteSlice> slices = {Slice(head), Slice(tail)};
    GradientReader reader(slices);

    EXPECT_EQ(Text(reader.Next(5, scratch.data()), 5), "01234") << cut;
    EXPECT_EQ(Text(reader.Next(5, scratch.data()), 5), "56789") << cut;
  }
}

}  // namespace
}  // namespace lockstep::server
