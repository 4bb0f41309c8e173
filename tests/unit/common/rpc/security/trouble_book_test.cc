#include "common/rpc/security/trouble_book.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ManualClock;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(TroubleBookTest, RepeatedTroubleIsLoggedOnceAMinute) {
  ManualClock clock;
  TroubleBook book(clock);
  EXPECT_TRUE(book.Note("expired"));
  clock.Advance(absl::Seconds(59));
  EXPECT_FALSE(book.Note("expired"));
  EXPECT_TRUE(book.Note("another"));
  clock.Advance(absl::Seconds(1));
  EXPECT_TRUE(book.Note("expired"));
}

TEST(TroubleBookTest, TroubleThatIsNotNotedAgainIsOver) {
  ManualClock clock;
  TroubleBook book(clock);
  book.Note("z first");
  clock.Advance(absl::Seconds(1));
  book.NoteHandshake("a second");
  EXPECT_THAT(book.Current(), ElementsAre("z first", "a second"));
  clock.Advance(TroubleBook::kLasts);
  EXPECT_THAT(book.Current(), ElementsAre("a second"));
  clock.Advance(absl::Seconds(1));
  EXPECT_THAT(book.Current(), IsEmpty());
  EXPECT_EQ(book.failed_handshakes(), 1);
}

TEST(TroubleBookTest, SentencesOfOneTopicAreOneTrouble) {
  ManualClock clock;
  TroubleBook book(clock);
  const auto note = [&book](int hours) {
    return book.Note(absl::StrCat("it expires in ", hours, " h"),
                     absl::Hours(6), "the certificate");
  };
  EXPECT_TRUE(note(47));
  for (int hours = 46; hours > 41; --hours) {
    clock.Advance(absl::Hours(1));
    EXPECT_FALSE(note(hours)) << hours;
    EXPECT_THAT(book.Current(),
                ElementsAre(absl::StrCat("it expires in ", hours, " h")));
  }
  clock.Advance(absl::Hours(1));
  EXPECT_TRUE(note(41));
}

TEST(TroubleBookTest, DeniedCallsAreCountedAndNoTroubleOfTheJob) {
  ManualClock clock;
  TroubleBook book(clock);
  EXPECT_TRUE(book.NoteDenied("Stop", "worker", "worker 1 must not"));
  EXPECT_FALSE(book.NoteDenied("Stop", "worker", "worker 1 must not"));
  EXPECT_THAT(book.denied(), ElementsAre(Pair(Pair("Stop", "worker"), 2)));
  EXPECT_THAT(book.Current(), IsEmpty());
}

TEST(TroubleBookTest, PeersCannotFillTheMemoryOrTheLog) {
  ManualClock clock;
  TroubleBook book(clock);
  size_t logged = 0;
  for (int i = 0; i < 10000; ++i) {
    logged += book.NoteHandshake(absl::StrCat("certificate ", i)) ? 1 : 0;
  }
  EXPECT_EQ(logged, TroubleBook::kMost);
  EXPECT_EQ(book.Current().size(), TroubleBook::kMost);
  // Nor hide what this process finds by itself.
  EXPECT_TRUE(book.Note("the own certificate has expired"));
  EXPECT_THAT(book.Current(), Contains("the own certificate has expired"));
  clock.Advance(2 * TroubleBook::kLogEvery);
  EXPECT_TRUE(book.Note("later"));
  EXPECT_THAT(book.Current(), ElementsAre("later"));
}

}  // namespace
}  // namespace lockstep
