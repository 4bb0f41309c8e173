#include "common/text/vocabulary.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(VocabularyTest, WordsAreLettersInLowerCase) {
  EXPECT_THAT(SplitWords("Let there be light: and"),
              ElementsAre("let", "there", "be", "light", "and"));
  EXPECT_THAT(SplitWords("Aaron's rod' 'tis 12"),
              ElementsAre("aaron's", "rod", "tis"));
  EXPECT_THAT(SplitWords("--\xff 3"), IsEmpty());
}

TEST(VocabularyTest, FrequentWordsComeFirst) {
  const auto vocabulary = Vocabulary::Make("b a\nc B c\nb", 1);
  ASSERT_OK(vocabulary);
  EXPECT_EQ(vocabulary->size(), 3);
  EXPECT_EQ(vocabulary->word(0), "b");
  EXPECT_EQ(vocabulary->count(0), 3);
  EXPECT_THAT(vocabulary->Find("c"), Optional(1));
  EXPECT_EQ(vocabulary->Find("d"), std::nullopt);
}

// All workers must number them alike, whatever the order of a hash table.
TEST(VocabularyTest, EquallyFrequentWordsAreInAlphabeticalOrder) {
  const auto vocabulary = Vocabulary::Make("d b e a c z z", 1);
  ASSERT_OK(vocabulary);
  ASSERT_EQ(vocabulary->size(), 6);
  std::string words;
  for (int64_t i = 0; i < 6; ++i) {
    words += vocabulary->word(i);
    EXPECT_THAT(vocabulary->Find(vocabulary->word(i)), Optional(i));
  }
  EXPECT_EQ(words, "zabcde");
}

TEST(VocabularyTest, RareWordsAreLeftOut) {
  const auto vocabulary = Vocabulary::Make("b a b", 2);
  ASSERT_OK(vocabulary);
  EXPECT_EQ(vocabulary->size(), 1);
  EXPECT_THAT(Vocabulary::Make("b a b", 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("no word occurs 3 times; lower "
                                            "data.min_count")));
}

}  // namespace
}  // namespace lockstep
