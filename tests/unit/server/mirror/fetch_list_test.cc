#include "server/mirror/fetch_list.h"

#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Parts of `elements` floats, by the server that reduces them; -1: this one.
std::vector<PartSpec> Parts(std::vector<int> reducers, int64_t elements = 10) {
  std::vector<PartSpec> parts;
  for (const int reducer : reducers) {
    PartSpec& part = parts.emplace_back();
    part.count = elements;
    part.reducer = reducer;
  }
  return parts;
}

std::vector<Fetch> MakeFetches(const std::vector<PartSpec>& parts,
                               std::vector<int> wanted, size_t target_bytes,
                               int mapped_server = -1) {
  return server::MakeFetches(parts, wanted, target_bytes, [&](int server) {
    return server == mapped_server;
  });
}

TEST(FetchListTest, ConsecutivePartsOfOneServerTravelTogether) {
  EXPECT_THAT(MakeFetches(Parts({1, 1, 1, -1, 2}), {0, 1, 2, 4}, 1000),
              ElementsAre(FieldsAre(1, 0, 3), FieldsAre(2, 4, 1)));
}

TEST(FetchListTest, PartsThatAreNotWantedEndACall) {
  EXPECT_THAT(MakeFetches(Parts({1, 1, 1}), {0, 2}, 1000),
              ElementsAre(FieldsAre(1, 0, 1), FieldsAre(1, 2, 1)));
}

TEST(FetchListTest, CallsHaveAboutTheTargetsBytes) {
  EXPECT_THAT(MakeFetches(Parts({1, 1, 1}), {0, 1, 2}, 80),
              ElementsAre(FieldsAre(1, 0, 2), FieldsAre(1, 2, 1)));
}

TEST(FetchListTest, LargePartTravelsAlone) {
  EXPECT_THAT(MakeFetches(Parts({1, 1}, 1000), {0, 1}, 80),
              ElementsAre(FieldsAre(1, 0, 1), FieldsAre(1, 1, 1)));
}

// Else those beyond the limit of a connection would wait for the means of the
// first parts.
TEST(FetchListTest, ConnectionCarriesTheCallsOfAllPartsAtOnce) {
  const std::vector<PartSpec> parts = Parts(std::vector<int>(600, 1));
  std::vector<int> all(600);
  std::iota(all.begin(), all.end(), 0);

  const std::vector<Fetch> fetches = MakeFetches(parts, all, 40);

  EXPECT_LT(fetches.size(), 256u);
  // Those that are repeated are the same calls.
  const std::vector<int> some(all.begin(), all.begin() + 10);
  EXPECT_THAT(MakeFetches(parts, some, 40),
              ElementsAre(FieldsAre(1, 0, 5), FieldsAre(1, 5, 5)));
}

// Bytes do not travel from it, so calls are fewer: 16, where parts allow it.
TEST(FetchListTest, CallsToAMappedServerAreLarger) {
  std::vector<int> reducers(64, 1);
  reducers.insert(reducers.end(), 64, 2);
  std::vector<int> all(128);
  std::iota(all.begin(), all.end(), 0);

  const std::vector<Fetch> fetches =
      MakeFetches(Parts(reducers), all, 40, /*mapped_server=*/2);

  ASSERT_THAT(fetches, SizeIs(64 + 16));
  EXPECT_THAT(fetches[63], FieldsAre(1, 63, 1));
  EXPECT_THAT(fetches[64], FieldsAre(2, 64, 4));
}

TEST(FetchListTest, OwnPartsHaveNoServerThatCouldBeMapped) {
  std::vector<int> asked;
  server::MakeFetches(Parts({1, -1, 2}), {{0, 2}}, 80, [&](int server) {
    asked.push_back(server);
    return false;
  });
  EXPECT_THAT(asked, ElementsAre(1, 2));
}

// Their means have no place in shared memory.
TEST(FetchListTest, TablesTravelWithTablesAlone) {
  std::vector<PartSpec> parts = Parts({1, 1, 1, 1});
  parts[1].row_width = parts[2].row_width = 5;

  EXPECT_THAT(
      MakeFetches(parts, {0, 1, 2, 3}, 1000),
      ElementsAre(FieldsAre(1, 0, 1), FieldsAre(1, 1, 2), FieldsAre(1, 3, 1)));
}

TEST(FetchListTest, FetchHasTheBytesOfItsParts) {
  EXPECT_EQ(BytesOf(Parts({1, 1, 1, 2}), {1, 1, 2}), 80u);
}

TEST(FetchListTest, FetchOfATableDoesNotCountAllOfItsRows) {
  std::vector<PartSpec> parts = Parts({1, 1}, int64_t{1} << 30);
  parts[0].row_width = parts[1].row_width = 1 << 10;
  EXPECT_EQ(BytesOf(parts, {1, 0, 2}), 2 * kMostTableBytes);
  parts[1].count = 1 << 10;
  EXPECT_EQ(BytesOf(parts, {1, 1, 1}), size_t{4} << 10);
}

TEST(FetchListTest, NothingWantedIsNoCall) {
  EXPECT_THAT(MakeFetches(Parts({1}), {}, 80), IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
