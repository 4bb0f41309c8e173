#include "deploy/cli/text/text_table.h"

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

using Align = TextTable::Align;

TextTable NameAndCount() {
  return TextTable({{.title = "name", .shrinks = true},
                    {.title = "count", .align = Align::kRight}});
}

TEST(TextTableTest, ColumnsAreAsWideAsTheirWidestCell) {
  TextTable table = NameAndCount();
  table.AddRow({"worker 0", "7"});
  table.AddRow({"ps", "123456"});

  EXPECT_EQ(table.Format(80),
            "name       count\n"
            "worker 0       7\n"
            "ps        123456\n");
}

TEST(TextTableTest, AColumnThatShrinksGivesWayFirst) {
  TextTable table = NameAndCount();
  table.AddRow({"a very long name", "7"});

  EXPECT_EQ(table.Format(16),
            "name       count\n"
            "a very l~      7\n");
}

TEST(TextTableTest, NumbersGiveWayToAColumnThatWantsItsWidth) {
  TextTable table({{.title = "doing", .shrinks = true, .wanted = 12},
                   {.title = "n", .align = Align::kRight},
                   {.title = "more", .align = Align::kRight}});
  table.AddRow({"computes step 15", "7", "8"});

  EXPECT_EQ(table.Format(23),
            "doing           n  more\n"
            "computes step~  7     8\n");
  EXPECT_EQ(table.Format(20),
            "doing             n\n"
            "computes step 15  7\n");
  EXPECT_EQ(table.Format(15),
            "doing         n\n"
            "computes st~  7\n");
  EXPECT_EQ(table.Format(10),
            "doing\n"
            "computes ~\n");
}

TEST(TextTableTest, NumbersThatDoNotFitAreLeftOutAndNotCut) {
  TextTable table = NameAndCount();
  table.AddRow({"long name", "1234567890"});

  EXPECT_EQ(table.Format(8),
            "name\n"
            "long na~\n");
}

TEST(TextTableTest, LinesAreCutWhereNothingElseHelps) {
  TextTable table(
      {{.title = "count", .align = Align::kRight}, {.title = "text"}});
  table.AddRow({"12", "some words"});

  EXPECT_EQ(table.Format(12),
            "count  text\n"
            "   12  some~\n");
}

TEST(TextTableTest, MissingCellsAreEmptyAndSurplusOnesDropped) {
  TextTable table = NameAndCount();
  table.AddRow({"ps"});
  table.AddRow({"a", "1", "2"});

  EXPECT_EQ(table.Format(80),
            "name  count\n"
            "ps\n"
            "a         1\n");
}

TEST(TextTableTest, CellsAreMadePrintable) {
  TextTable table = NameAndCount();
  table.AddRow({"a\nb\x1b", "1"});

  EXPECT_EQ(table.Format(80),
            "name  count\n"
            "a?b?      1\n");
}

}  // namespace
}  // namespace lockstep::cli
