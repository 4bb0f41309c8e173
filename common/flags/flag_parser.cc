#include "common/flags/flag_parser.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "common/flags/help_formatter.h"
#include "common/flags/nearest_match.h"

namespace lockstep {
namespace {

constexpr size_t kLongestEcho = 60;

// Makes `text` safe to repeat in a message: one line, of bounded length.
std::string Echo(std::string text) {
  if (text.size() > kLongestEcho) text = text.substr(0, kLongestEcho) + "...";
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return text;
}

std::vector<std::string> LongNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> SubcommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    names.push_back(subcommand->get_name());
  }
  return names;
}

std::string DidYouMean(const std::string& name, const std::string& prefix,
                       const std::vector<std::string>& candidates) {
  const std::optional<std::string> match = NearestMatch(name, candidates);
  if (!match.has_value()) return "";
  return "; did you mean " + prefix + *match + "?";
}

// A positional that takes all words is a user's program with its arguments,
// whose flags this program took for its own. A word behind the flag is rather
// the flag's value.
std::string OfOwnProgram(const CLI::App& app, const std::string& argument,
                         const std::vector<std::string>& words) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || option->get_items_expected_max() < 2 ||
        option->count() == 0) {
      continue;
    }
    const auto program =
        std::find(words.begin(), words.end(), option->results().front());
    if (std::find(words.begin(), program, argument) != program) return "";
    return "; if it is a flag of your own program, put -- before that: -- " +
           Echo(option->results().front()) + " ...";
  }
  return "";
}

// The value after '=' is left out of the message: it may be a secret.
std::string ExplainFlag(const CLI::App& app, const std::string& argument,
                        const std::vector<std::string>& words) {
  const std::string flag = argument.substr(0, argument.find('='));
  const size_t begin = flag.find_first_not_of('-');
  const std::string name = begin == std::string::npos ? "" : flag.substr(begin);
  return "unknown flag " + Echo(flag) + DidYouMean(name, "--", LongNames(app)) +
         OfOwnProgram(app, argument, words);
}

std::string ExplainWord(const CLI::App& app, const std::string& argument) {
  const std::vector<std::string> subcommands = SubcommandNames(app);
  // After a chosen sub-command, a further word cannot be a misspelt one.
  if (subcommands.empty() || !app.get_subcommands().empty()) {
    return "unexpected argument \"" + Echo(argument) + "\"";
  }
  return "unknown sub-command " + Echo(argument) +
         DidYouMean(argument, "", subcommands);
}

// Explains the first argument that neither `app` nor its chosen sub-commands
// know. Empty if there is none. CLI11 leaves to `app` all words behind one that
// a sub-command does not know, so the sub-command's is the cause.
std::string ExplainLeftOver(const CLI::App& app,
                            const std::vector<std::string>& words) {
  for (const CLI::App* chosen : app.get_subcommands()) {
    std::string explained = ExplainLeftOver(*chosen, words);
    if (!explained.empty()) return explained;
  }
  for (const std::string& first : app.remaining()) {
    if (first == "--") continue;  // it only says that no flags follow
    return first.starts_with('-') ? ExplainFlag(app, first, words)
                                  : ExplainWord(app, first);
  }
  return "";
}

// Returns the first argument of the form "--flag=" without a value; empty if
// there is none. CLI11 would take the next argument as its value.
std::string FlagWithoutValue(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--") break;
    if (!argument.starts_with("--")) continue;
    const size_t equals = argument.find('=');
    // Without '=', find() returns npos, and npos + 1 is 0, which no size equals
    // here.
    if (equals + 1 == argument.size()) return argument.substr(0, equals);
  }
  return "";
}

// Returns the chain of sub-commands before --help, as typed.
std::string HelpHint(const CLI::App& app) {
  std::string command = app.get_name();
  const CLI::App* current = &app;
  while (!current->get_subcommands().empty()) {
    current = current->get_subcommands().front();
    command += " " + current->get_name();
  }
  return command + " --help";
}

}  // namespace

FlagParser::FlagParser(const std::string& program, const std::string& summary)
    : app_(summary, program) {
  app_.formatter(std::make_shared<HelpFormatter>());
  app_.set_help_flag("-h,--help", "Print this text and leave.");
  app_.set_version_flag("--version", program + " " + LOCKSTEP_VERSION,
                        "Print the version and leave.");
}

std::optional<int> FlagParser::Parse(int argc, const char* const* argv,
                                     std::ostream& out, std::ostream& err) {
  const std::string bare = FlagWithoutValue(argc, argv);
  if (!bare.empty()) {
    return RefuseUsage("flag " + Echo(bare) +
                           "= has no value; give one, or leave the flag out",
                       err);
  }
  try {
    app_.parse(argc, argv);
  } catch (const CLI::Error& error) {
    return Explain(error, {argv, argv + argc}, out, err);
  }
  if (argc > 1 && std::string(argv[argc - 1]) == "--") {
    return RefuseUsage(
        "nothing follows --; give what belongs there, or leave it out", err);
  }
  return std::nullopt;
}

int FlagParser::RefuseUsage(const std::string& message,
                            std::ostream& err) const {
  err << app_.get_name() << ": " << message << "\nTry '" << HelpHint(app_)
      << "'.\n";
  return kUsageExitCode;
}

// If a required flag is missing and another one is misspelt, the misspelt flag
// is the better explanation.
int FlagParser::Explain(const CLI::Error& error,
                        const std::vector<std::string>& words,
                        std::ostream& out, std::ostream& err) const {
  // CLI11 throws for --help and --version too.
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    return app_.exit(error, out, err);
  }
  const std::string left_over = ExplainLeftOver(app_, words);
  return RefuseUsage(left_over.empty() ? error.what() : left_over, err);
}

}  // namespace lockstep
