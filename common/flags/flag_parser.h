#ifndef LOCKSTEP_COMMON_FLAGS_FLAG_PARSER_H_
#define LOCKSTEP_COMMON_FLAGS_FLAG_PARSER_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace lockstep {

// Exit code for an unusable command line. It is below 128, because a restart of
// the program would not help.
inline constexpr int kUsageExitCode = 2;

// Accepts whole numbers from `least` on. CLI11's own checks use doubles, and
// print the largest one with all its 309 digits.
inline CLI::Range AtLeast(int64_t least) {
  return {least, std::numeric_limits<int64_t>::max()};
}

// FlagParser is the command line of one program: CLI11 with --help, --version
// and refusals that are the same in every program.
//
//   FlagParser flags("ps_server", "Holds variables and updates them.");
//   flags.app().add_option("--state_dir", state_dir, "Where ...");
//   const auto code = flags.Parse(argc, argv, std::cout, std::cerr);
//   if (code.has_value()) return *code;
//
// Threads: not thread-safe.
class FlagParser {
 public:
  FlagParser(const std::string& program, const std::string& summary);
  FlagParser(const FlagParser&) = delete;
  FlagParser& operator=(const FlagParser&) = delete;

  // For declaring flags and sub-commands; must be done before Parse().
  CLI::App& app() { return app_; }

  // Reads the command line into the declared variables. Returns nothing if the
  // program should go on, else its exit code: 0 after --help or --version,
  // which print to `out`; kUsageExitCode after a usage error, which is
  // explained on `err`. Variables are unspecified after an error.
  std::optional<int> Parse(int argc, const char* const* argv, std::ostream& out,
                           std::ostream& err);

  // Prints `message` in the format of Parse(), for values that the program
  // finds unusable after parsing. Returns kUsageExitCode.
  int RefuseUsage(const std::string& message, std::ostream& err) const;

 private:
  // `words` are those of the command line.
  int Explain(const CLI::Error& error, const std::vector<std::string>& words,
              std::ostream& out, std::ostream& err) const;

  CLI::App app_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FLAGS_FLAG_PARSER_H_
