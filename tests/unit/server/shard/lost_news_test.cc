#include "server/shard/lost_news.h"

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

const std::vector<int> kBoth = {0, 1};

TEST(LostNewsTest, NoLostWorkerIsNoNews) {
  LostNews news;

  EXPECT_FALSE(news.MayBeNews({}));
  EXPECT_FALSE(news.TakeNews(4, 1, kBoth, {}));
}

TEST(LostNewsTest, LostMemberIsNewsOnce) {
  LostNews news;

  EXPECT_TRUE(news.MayBeNews({1}));
  EXPECT_TRUE(news.TakeNews(4, 1, kBoth, {1}));
  EXPECT_FALSE(news.TakeNews(4, 1, kBoth, {1}));
}

TEST(LostNewsTest, WorkerThatIsNoMemberHoldsUpNoStep) {
  LostNews news;

  EXPECT_FALSE(news.TakeNews(4, 1, kBoth, {2}));
  EXPECT_TRUE(news.TakeNews(4, 1, kBoth, {0, 2}));
}

TEST(LostNewsTest, AnyWorkerMayBeAMemberWhereTheSetIsUnknown) {
  LostNews news;

  EXPECT_TRUE(news.TakeNews(4, 1, std::nullopt, {2}));
}

TEST(LostNewsTest, ChangedStepIsNews) {
  LostNews news;
  ASSERT_TRUE(news.TakeNews(4, 1, kBoth, {1}));

  EXPECT_TRUE(news.TakeNews(4, 2, kBoth, {1}));
  EXPECT_TRUE(news.TakeNews(5, 2, kBoth, {1}));
  EXPECT_TRUE(news.TakeNews(5, 2, {{0, 1, 2}}, {1}));
}

TEST(LostNewsTest, ReturnOfALostWorkerIsNews) {
  LostNews news;
  ASSERT_TRUE(news.TakeNews(4, 1, kBoth, {1}));

  EXPECT_TRUE(news.MayBeNews({}));
  EXPECT_TRUE(news.TakeNews(4, 1, kBoth, {}));
  EXPECT_FALSE(news.MayBeNews({}));
}

}  // namespace
}  // namespace lockstep::server
