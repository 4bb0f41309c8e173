#include "server/state/tables/stored_word.h"

#include <signal.h>
#include <sys/time.h>

#include <cstdint>

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

// As in a state file: a word, and the word that says that it is there.
int64_t g_words[2];
volatile int64_t g_looks = 0;
volatile int64_t g_wrong = 0;

// Comes between any two instructions, as the end of a process does.
void Look(int) {
  const volatile int64_t* words = g_words;
  const int64_t second = words[1];
  const int64_t first = words[0];
  g_wrong = g_wrong + (first < second || first > second + 1 ? 1 : 0);
  g_looks = g_looks + 1;
}

TEST(StoredWordTest, WordFollowsTheOneThatWasWrittenBeforeIt) {
  struct sigaction look = {};
  look.sa_handler = Look;
  struct sigaction before;
  ASSERT_EQ(sigaction(SIGVTALRM, &look, &before), 0);
  const itimerval often = {{0, 1000},
                           {0, 1000}};  // microseconds of this thread
  ASSERT_EQ(setitimer(ITIMER_VIRTUAL, &often, nullptr), 0);

  for (int64_t i = 1; g_looks < 20; ++i) {
    g_words[0] = i;
    StoreWord(&g_words[1], i);
  }

  const itimerval never = {};
  setitimer(ITIMER_VIRTUAL, &never, nullptr);
  sigaction(SIGVTALRM, &before, nullptr);
  EXPECT_EQ(g_wrong, 0);
  EXPECT_EQ(g_words[1], g_words[0]);
}

}  // namespace
}  // namespace lockstep::server
