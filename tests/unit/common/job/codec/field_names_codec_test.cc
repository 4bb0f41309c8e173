#include "common/job/codec/field_names_codec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/job.pb.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FieldNamesCodecTest, FieldsAreInTheOrderOfTheFile) {
  EXPECT_THAT(FieldNames(*v1::CheckpointConfig::descriptor()),
              ElementsAre("directory", "every_steps", "every", "keep",
                          "initial_values"));
}

TEST(FieldNamesCodecTest, UnspecifiedIsNoChoice) {
  EXPECT_THAT(EnumNames(*v1::SyncMode_descriptor()),
              ElementsAre("STRICT", "COMPATIBLE"));
}

TEST(FieldNamesCodecTest, FieldOfSeveralMessagesHasTheNamesOfAll) {
  const std::vector<std::string> names =
      EnumNames(*v1::JobConfig::descriptor(), "kind");

  EXPECT_THAT(names, Contains("ADAM"));
  EXPECT_THAT(names, Contains("COSINE_DECAY"));
}

TEST(FieldNamesCodecTest, FieldThatIsNoEnumerationHasNoNames) {
  EXPECT_THAT(EnumNames(*v1::JobConfig::descriptor(), "seed"), IsEmpty());
  EXPECT_THAT(EnumNames(*v1::JobConfig::descriptor(), "nothing"), IsEmpty());
}

TEST(FieldNamesCodecTest, PathsAreThoseInTheFewestGroups) {
  const auto paths = [](const char* name) {
    return FieldPaths(*v1::JobConfig::descriptor(), name);
  };

  EXPECT_THAT(paths("learning_rate"), ElementsAre("learning_rate"));
  // Not those of local { optimizer { ... } }.
  EXPECT_THAT(paths("momentum"), ElementsAre("optimizer.momentum"));
  EXPECT_THAT(paths("directory"),
              ElementsAre("checkpoint.directory", "summary.directory"));
  // A duration is one value, and a list of groups cannot be named by a path.
  EXPECT_THAT(paths("nanos"), IsEmpty());
  EXPECT_THAT(paths("max_norm"), IsEmpty());
  EXPECT_THAT(paths(""), IsEmpty());
}

TEST(FieldNamesCodecTest, ShallowestPathsKeepTheirOrder) {
  const std::vector<std::string> paths = {"a.b.x", "c.x", "a.x", "ax", "x.a"};

  EXPECT_THAT(ShallowestPaths(paths, "x"), ElementsAre("c.x", "a.x"));
  EXPECT_THAT(ShallowestPaths(paths, "b.x"), IsEmpty());
}

TEST(FieldNamesCodecTest, HintIsTheNearestNameOrAll) {
  EXPECT_EQ(NameHint("keeep", {"every", "keep"}), "; did you mean keep?");
  EXPECT_EQ(NameHint("keeep", {"keep"}, "a."), "; did you mean a.keep?");
  EXPECT_EQ(NameHint("xyzzy", {"every", "keep"}), "; known are every, keep");
}

}  // namespace
}  // namespace lockstep
