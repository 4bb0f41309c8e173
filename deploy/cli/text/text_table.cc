#include "deploy/cli/text/text_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {
namespace {

constexpr size_t kGap = 2;

}  // namespace

TextTable::TextTable(std::vector<Column> columns)
    : columns_(std::move(columns)) {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  AddRow(std::move(titles));
}

void TextTable::AddRow(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::Format(size_t width) const {
  const std::vector<size_t> widths = Widths(width);
  std::string out;
  for (const std::vector<std::string>& row : rows_) {
    absl::StrAppend(&out, FormatRow(row, widths, width), "\n");
  }
  return out;
}

std::vector<size_t> TextTable::Widths(size_t width) const {
  size_t shown = columns_.size();
  while (true) {
    const std::vector<size_t> widths = WidthsOf(shown, width, true);
    size_t total = 0;
    for (size_t i = 0; i < shown; ++i) total += widths[i] + (i == 0 ? 0 : kGap);
    if (total <= width) return widths;
    // A number without its last digits is another number.
    const bool number = shown > 1 && columns_[shown - 1].align == Align::kRight;
    if (!number) return WidthsOf(shown, width, false);
    --shown;
  }
}

std::vector<size_t> TextTable::WidthsOf(size_t shown, size_t width,
                                        bool as_wanted) const {
  std::vector<size_t> widths(shown);
  size_t total = 0;
  for (size_t i = 0; i < shown; ++i) {
    for (const auto& row : rows_)
      widths[i] = std::max(widths[i], Columns(row[i]));
    total += widths[i] + (i == 0 ? 0 : kGap);
  }
  for (size_t i = 0; i < shown && total > width; ++i) {
    if (!columns_[i].shrinks) continue;
    // A title is never cut, so that the column can be told.
    const size_t title = Columns(rows_.front()[i]);
    const size_t least =
        as_wanted ? std::max(title, std::min(widths[i], columns_[i].wanted))
                  : title;
    const size_t spare = widths[i] - least;
    const size_t given = std::min(spare, total - width);
    widths[i] -= given;
    total -= given;
  }
  return widths;
}

std::string TextTable::FormatRow(const std::vector<std::string>& cells,
                                 const std::vector<size_t>& widths,
                                 size_t width) const {
  std::string line;
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string cell = Clip(cells[i], widths[i]);
    const std::string padding(widths[i] - Columns(cell), ' ');
    absl::StrAppend(&line, i == 0 ? "" : std::string(kGap, ' '));
    if (columns_[i].align == Align::kRight) {
      absl::StrAppend(&line, padding, cell);
    } else {
      absl::StrAppend(&line, cell, padding);
    }
  }
  // Padding of the last column would be wrapped by a narrow window.
  return Clip(absl::StripTrailingAsciiWhitespace(line), width);
}

}  // namespace lockstep::cli
