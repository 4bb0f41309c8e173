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
    // Other columns are left out before a column that shrinks gets narrower
    // than this, or than its cells.
    size_t wanted = 0;
  };

  explicit TextTable(std::vector<Column> columns);

  // Missing cells are empty; cells beyond the last column are dropped.
  void AddRow(std::vector<std::string> cells);

  // Returns lines of at most `width` columns, each ended by a line feed.
  // Columns that shrink do so first, down to the width that they want; then
  // numbers at the end, columns aligned to the right, are left out; then
  // columns shrink down to the width of their title, and at last lines are cut.
  std::string Format(size_t width) const;

 private:
  // One for each column that is shown.
  std::vector<size_t> Widths(size_t width) const;
  std::vector<size_t> WidthsOf(size_t shown, size_t width,
                               bool as_wanted) const;
  std::string FormatRow(const std::vector<std::string>& cells,
                        const std::vector<size_t>& widths, size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_TABLE_H_
