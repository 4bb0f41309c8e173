#include "common/rpc/security/identity_map.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(IdentityMapTest, ReadsNamesAndTheirRoles) {
  const auto map = ParseIdentityMap(
      "# the mesh's names\n"
      "\n"
      "spiffe://cluster.local/ns/ml/sa/lockstep-worker = worker/*\n"
      "  admin.example.com=operator/steer\r\n",
      "map", "fashion");
  ASSERT_OK(map);
  EXPECT_THAT(
      *map, ElementsAre(
                Pair("admin.example.com",
                     CertificateName{"fashion", Role::kSteerer, std::nullopt}),
                Pair("spiffe://cluster.local/ns/ml/sa/lockstep-worker",
                     CertificateName{"fashion", Role::kWorker, std::nullopt})));
}

TEST(IdentityMapTest, MistakesAreNamedWithTheirLine) {
  const std::pair<const char*, const char*> kMistakes[] = {
      {"a = worker/1\nb", "map:2: \"b\" is not NAME = ROLE/INDEX"},
      {"a =", "map:1"},
      {"= worker/1", "map:1"},
      {"a = boss/1", "no such role"},
      {"a = worker", "it is not ROLE/INDEX"},
      {"a = worker/1\na = ps/0", "map:2: \"a\" is there twice"},
      {"lockstep://fashion/ps/0 = chief/0", "has a meaning already"},
      {"spiffe://d/lockstep/other/ps/0 = chief/0", "has a meaning already"},
  };
  for (const auto& [text, message] : kMistakes) {
    EXPECT_THAT(
        ParseIdentityMap(text, "map", "fashion"),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  }
}

TEST(IdentityMapTest, RolesAreOfTheJobOfTheCertificateOrTheMap) {
  const std::string text = "a = worker/1\njob = fashion\n";
  EXPECT_EQ(JobInIdentityMap(text), "fashion");
  EXPECT_EQ(JobInIdentityMap("a = worker/1\n#job = x\n"), "");
  EXPECT_THAT(ParseIdentityMap(text, "map", "fashion"), testing::IsOk());
  EXPECT_THAT(ParseIdentityMap(text, "map", "other"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("of job \"fashion\", the own")));
  EXPECT_THAT(ParseIdentityMap("a = worker/1", "map", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the job is missing")));
}

TEST(IdentityMapTest, TooLargeAMapIsRefused) {
  EXPECT_THAT(
      ParseIdentityMap(std::string(kLargestIdentityMap + 1, '#'), "map", "f"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes")));
}

}  // namespace
}  // namespace lockstep
