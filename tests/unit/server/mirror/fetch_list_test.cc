#include "server/mirror/fetch_list.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

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

TEST(FetchListTest, ConsecutivePartsOfOneServerTravelTogether) {
  EXPECT_THAT(MakeFetches(Parts({1, 1, 1, -1, 2}), {{0, 1, 2, 4}}, 1000),
              ElementsAre(FieldsAre(1, 0, 3), FieldsAre(2, 4, 1)));
}

TEST(FetchListTest, PartsThatAreNotWantedEndACall) {
  EXPECT_THAT(MakeFetches(Parts({1, 1, 1}), {{0, 2}}, 1000),
              ElementsAre(FieldsAre(1, 0, 1), FieldsAre(1, 2, 1)));
}

TEST(FetchListTest, CallsHaveAboutTheTargetsBytes) {
  EXPECT_THAT(MakeFetches(Parts({1, 1, 1}), {{0, 1, 2}}, 80),
              ElementsAre(FieldsAre(1, 0, 2), FieldsAre(1, 2, 1)));
}

TEST(FetchListTest, LargePartTravelsAlone) {
  EXPECT_THAT(MakeFetches(Parts({1, 1}, 1000), {{0, 1}}, 80),
              ElementsAre(FieldsAre(1, 0, 1), FieldsAre(1, 1, 1)));
}

TEST(FetchListTest, NothingWantedIsNoCall) {
  EXPECT_THAT(MakeFetches(Parts({1}), {}, 80), IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
