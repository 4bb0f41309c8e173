#include "common/flags/help_formatter.h"

#include <cstddef>
#include <utility>

#include "common/flags/wrap_text.h"

namespace lockstep {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kRightColumn = 26;
constexpr size_t kHangingIndent = 6;

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

HelpFormatter::HelpFormatter() { column_width(kRightColumn); }

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return WrapText(CLI::Formatter::make_description(app), kWidth);
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  return WrapText(CLI::Formatter::make_footer(app), kWidth);
}

std::string HelpFormatter::make_usage(const CLI::App* app,
                                      std::string name) const {
  return WrapText(CLI::Formatter::make_usage(app, std::move(name)), kWidth,
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
  const bool fits = left.size() + 2 <= kWidth;
  std::string out = WrapText("  " + (fits ? left : WithSpacesAfterCommas(left)),
                             kWidth, kHangingIndent);
  if (right.empty()) return out + "\n";
  // At least two spaces between the columns, otherwise the right one begins on
  // the next line.
  if (out.size() + 2 > kRightColumn) {
    out += "\n" + std::string(kRightColumn, ' ');
  } else {
    out.resize(kRightColumn, ' ');
  }
  for (char c : WrapText(right, kWidth - kRightColumn)) {
    out += c;
    if (c == '\n') out.append(kRightColumn, ' ');
  }
  return out + "\n";
}

}  // namespace lockstep
