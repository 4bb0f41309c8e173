#ifndef LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_TABLE_H_
#define LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::cli {

// TextTable formats a table for people: columns as wide as their widest cell,
// two spaces apart, under a line of titles.
//
// Units: widths count columns of the terminal, as Columns() does; cells are
//        made printable.
// Threads: not thread-safe.
class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title{};
    Align align = Align::kLeft;
    bool shrinks = false;  // gets narrower if the table is too wide
  };

  explicit TextTable(std::vector<Column> columns);

  // Missing cells are empty; cells beyond the last column are dropped.
  void AddRow(std::vector<std::string> cells);

  // Returns lines of at most `width` columns, each ended by a line feed.
  // Columns that shrink do so first, down to the width of their title; then
  // numbers at the end, columns aligned to the right, are left out, and other
  // lines are cut.
  std::string Format(size_t width) const;

 private:
  // One for each column that is shown.
  std::vector<size_t> Widths(size_t width) const;
  std::vector<size_t> WidthsOf(size_t shown, size_t width) const;
  std::string FormatRow(const std::vector<std::string>& cells,
                        const std::vector<size_t>& widths, size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_TABLE_H_
