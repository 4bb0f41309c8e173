#include "common/flags/help_formatter.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/flags/wrap_text.h"

namespace lockstep {
namespace {

constexpr size_t kMostWidth = 80;
constexpr size_t kLeastWidth = 40;
constexpr size_t kHangingIndent = 6;

size_t WidthOfWindow() {
  winsize window = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) {
    return kMostWidth;
  }
  return std::clamp<size_t>(window.ws_col, kLeastWidth, kMostWidth);
}

size_t RightColumn(size_t width) { return width < 70 ? 18 : 26; }

// Inserts spaces after commas, because WrapText() would treat a long set of
// allowed values as one word.
std::string WithSpacesAfterCommas(const std::string& text) {
  std::string out;
  for (char c : text) {
    out += c;
    if (c == ',') out += ' ';
  }
  return out;
}

}  // namespace

HelpFormatter::HelpFormatter() : HelpFormatter(WidthOfWindow()) {}

HelpFormatter::HelpFormatter(size_t width)
    : width_(width), right_column_(RightColumn(width)) {
  column_width(right_column_);
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return WrapText(CLI::Formatter::make_description(app), width_);
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  return WrapText(CLI::Formatter::make_footer(app), width_);
}

std::string HelpFormatter::make_usage(const CLI::App* app,
                                      std::string name) const {
  return WrapText(CLI::Formatter::make_usage(app, std::move(name)), width_,
                  kHangingIndent);
}

std::string HelpFormatter::make_option(const CLI::Option* option,
                                       bool is_positional) const {
  return TwoColumns(
      make_option_name(option, is_positional) + make_option_opts(option),
      make_option_desc(option));
}

std::string HelpFormatter::make_subcommand(const CLI::App* subcommand) const {
  return TwoColumns(subcommand->get_display_name(true),
                    subcommand->get_description());
}

// A left side that is too wide for its column gets lines of its own.
std::string HelpFormatter::TwoColumns(const std::string& left,
                                      const std::string& right) const {
  const bool fits = left.size() + 2 <= width_;
  std::string out = WrapText("  " + (fits ? left : WithSpacesAfterCommas(left)),
                             width_, kHangingIndent);
  if (right.empty()) return out + "\n";
  // At least two spaces between the columns, otherwise the right one begins on
  // the next line.
  if (out.size() + 2 > right_column_) {
    out += "\n" + std::string(right_column_, ' ');
  } else {
    out.resize(right_column_, ' ');
  }
  for (char c : WrapText(right, width_ - right_column_)) {
    out += c;
    if (c == '\n') out.append(right_column_, ' ');
  }
  return out + "\n";
}

}  // namespace lockstep
