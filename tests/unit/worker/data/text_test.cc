#include "worker/data/text.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint8_t> Bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

TEST(TextTest, LabelsAreTheBytesThatFollow) {
  const absl::StatusOr<Text> text = MakeText(Bytes("abcdefg"), 3);
  ASSERT_OK(text);

  const absl::StatusOr<Batch> batch = LoadTextBatch(*text, {1, 0});

  ASSERT_OK(batch);
  EXPECT_EQ(text->num_examples(), 2);
  EXPECT_EQ(batch->size, 2);
  EXPECT_THAT(batch->tokens, ElementsAre('d', 'e', 'f', 'a', 'b', 'c'));
  EXPECT_THAT(batch->labels, ElementsAre('e', 'f', 'g', 'b', 'c', 'd'));
}

TEST(TextTest, BytesAboveAsciiAreNotNegative) {
  const absl::StatusOr<Batch> batch =
      LoadTextBatch(*MakeText({200, 255}, 1), {0});

  ASSERT_OK(batch);
  EXPECT_THAT(batch->tokens, ElementsAre(200));
  EXPECT_THAT(batch->labels, ElementsAre(255));
}

TEST(TextTest, TextTooShortForAnExampleIsRefused) {
  for (const char* text : {"", "ab", "abc"}) {
    EXPECT_THAT(
        MakeText(Bytes(text), 3),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("give a longer text"),
                       HasSubstr("make data.sequence_length smaller"))));
  }
  EXPECT_THAT(MakeText(Bytes("abc"), 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TextTest, IdOutsideTheTextIsRefused) {
  const Text text = *MakeText(Bytes("abcdefg"), 3);

  for (const int64_t id : {-1, 2}) {
    EXPECT_THAT(LoadTextBatch(text, {id}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not in [0, 2)")));
  }
}

TEST(TextTest, ErrorsNameTheFile) {
  EXPECT_THAT(
      LoadText("/nowhere/text", 3),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/text")));
}

}  // namespace
}  // namespace lockstep::worker
