#include "deploy/cli/run/signal_inbox.h"

#include <poll.h>

#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(SignalInboxTest, SignalsAreReadInsteadOfActingUponUs) {
  SignalInbox inbox({SIGTERM, SIGWINCH});
  pollfd readable = {inbox.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, 0), 0);

  raise(SIGWINCH);
  raise(SIGTERM);

  EXPECT_EQ(poll(&readable, 1, 0), 1);
  EXPECT_THAT(inbox.TakeAll(), UnorderedElementsAre(SIGTERM, SIGWINCH));
  EXPECT_THAT(inbox.TakeAll(), IsEmpty());
}

// As the threads that a BLAS library starts before main().
TEST(SignalInboxTest, SignalsOfAnOlderThreadAreRead) {
  std::promise<void> blocked;
  std::promise<void> raised;
  std::thread older([&] {
    blocked.get_future().wait();
    raise(SIGTERM);  // to this thread, which does not block it
    raised.set_value();
  });
  {
    SignalInbox inbox({SIGTERM});
    blocked.set_value();
    raised.get_future().wait();
    EXPECT_THAT(inbox.TakeAll(), ElementsAre(SIGTERM));
  }
  older.join();
}

TEST(SignalInboxTest, OnlySignalsThatAskForItStop) {
  const auto before = signal(SIGQUIT, SIG_DFL);  // a shell's & ignores it
  SignalInbox inbox({SIGQUIT, SIGCHLD, SIGWINCH});

  raise(SIGCHLD);
  raise(SIGWINCH);
  EXPECT_EQ(inbox.TakeStop(), std::nullopt);
  raise(SIGWINCH);
  raise(SIGQUIT);
  EXPECT_EQ(inbox.TakeStop(), SIGQUIT);
  EXPECT_THAT(inbox.TakeAll(), IsEmpty());
  signal(SIGQUIT, before);
}

TEST(SignalInboxTest, SignalThatWasNotTakenIsDropped) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  {
    SignalInbox inbox({SIGTERM});
    raise(SIGTERM);
  }  // would end this process otherwise

  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

TEST(SignalInboxTest, AHangupOrQuitThatIsIgnoredStaysIgnored) {
  for (const int ignored : {SIGHUP, SIGQUIT}) {
    const auto before = signal(ignored, SIG_IGN);
    {
      SignalInbox inbox({ignored, SIGTERM});
      raise(ignored);
      EXPECT_THAT(inbox.TakeAll(), IsEmpty());
      raise(SIGTERM);
      EXPECT_THAT(inbox.TakeAll(), ElementsAre(SIGTERM));
    }
    EXPECT_EQ(signal(ignored, before), SIG_IGN);
  }
}

TEST(SignalInboxTest, AHangupThatIsNotIgnoredIsRead) {
  const auto before = signal(SIGHUP, SIG_DFL);  // nohup has tests ignore it
  {
    SignalInbox inbox({SIGHUP});
    raise(SIGHUP);
    EXPECT_THAT(inbox.TakeAll(), ElementsAre(SIGHUP));
  }
  signal(SIGHUP, before);
}

}  // namespace
}  // namespace lockstep::cli
