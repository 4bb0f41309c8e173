#ifndef LOCKSTEP_COMMON_FLAGS_HELP_FORMATTER_H_
#define LOCKSTEP_COMMON_FLAGS_HELP_FORMATTER_H_

#include <cstddef>
#include <string>

#include "CLI/CLI.hpp"

namespace lockstep {

// HelpFormatter is CLI11's help text, kept within a width: names on the left,
// explanations wrapped in a column of their own on the right.
//
// Threads: not thread-safe.
class HelpFormatter : public CLI::Formatter {
 public:
  // For the window that standard output is, of 40 to 80 columns; 80 columns if
  // it is no window, so that manual pages and files always have the same lines.
  HelpFormatter();
  explicit HelpFormatter(size_t width);

  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option,
                          bool is_positional) const override;
  std::string make_subcommand(const CLI::App* subcommand) const override;

 private:
  std::string TwoColumns(const std::string& left,
                         const std::string& right) const;

  const size_t width_;
  const size_t right_column_;  // where the explanations begin
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FLAGS_HELP_FORMATTER_H_
