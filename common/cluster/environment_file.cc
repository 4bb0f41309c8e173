#include "common/cluster/environment_file.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

// Characters that a backslash escapes within double quotes; before any other
// character the backslash stays.
constexpr absl::string_view kEscapable = "\"\\`$";

bool IsName(absl::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// Reader reads the text once, one variable at a time.
class Reader {
 public:
  Reader(absl::string_view text, absl::string_view source)
      : text_(text), source_(source) {}

  absl::StatusOr<Environment> Run() {
    Environment variables;
    while (SkipToVariable()) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::string name, ReadName());
      LOCKSTEP_ASSIGN_OR_RETURN(std::string value, ReadValue());
      variables.emplace_back(std::move(name), std::move(value));
    }
    return variables;
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return text_[at_]; }
  char Next() {
    if (text_[at_] == '\n') ++line_;
    return text_[at_++];
  }

  // False at the end of the text.
  bool SkipToVariable() {
    while (!AtEnd()) {
      if (absl::ascii_isspace(Peek())) {
        Next();
      } else if (Peek() == '#' || Peek() == ';') {
        SkipComment();
      } else {
        return true;
      }
    }
    return false;
  }

  void SkipComment() {
    while (!AtEnd()) {
      const char c = Next();
      if (c == '\n') return;
      // As in systemd, a backslash continues a comment on the next line.
      if (c == '\\' && !AtEnd()) Next();
    }
  }

  absl::StatusOr<std::string> ReadName() {
    const size_t end = text_.find_first_of("=\n", at_);
    if (end == absl::string_view::npos || text_[end] == '\n') {
      return Error(line_, "has no '='; write NAME=VALUE");
    }
    const absl::string_view name =
        absl::StripAsciiWhitespace(text_.substr(at_, end - at_));
    // Programs that set the environment from such files do not know the word
    // either.
    if (absl::StartsWith(name, "export") && name.size() > 6 &&
        absl::ascii_isspace(name[6])) {
      return Error(line_,
                   "begins with export, which only a shell knows; remove that "
                   "word");
    }
    if (!IsName(name)) {
      return Error(line_,
                   "has a name with other characters than A-Z, a-z, "
                   "0-9 and '_'; write NAME=VALUE");
    }
    at_ = end + 1;
    return std::string(name);
  }

  // A value may be a sequence of quoted and bare pieces.
  absl::StatusOr<std::string> ReadValue() {
    std::string value;
    while (!AtEnd() && Peek() != '\n') {
      if (Peek() == '\'' || Peek() == '"') {
        LOCKSTEP_RETURN_IF_ERROR(ReadQuoted(Next(), value));
      } else if (absl::ascii_isspace(Peek())) {
        Next();
      } else {
        ReadBare(value);
      }
    }
    return value;
  }

  // Reads to the end of the line; quotes inside are ordinary characters.
  void ReadBare(std::string& value) {
    const size_t start = value.size();
    size_t keep = start;  // spaces after this belong to the end of the line
    while (!AtEnd() && Peek() != '\n') {
      char c = Next();
      const bool escaped = c == '\\' && !AtEnd();
      if (escaped) c = Next();
      // The value goes on in the next line.
      if (escaped && c == '\n') continue;
      value.push_back(c);
      // An escaped space at the end of the line is part of the value.
      if (escaped || !absl::ascii_isspace(c)) keep = value.size();
    }
    value.resize(keep);
  }

  absl::Status ReadQuoted(char quote, std::string& value) {
    // The line of the opening quote: at the end of the text, the current line
    // would help no reader.
    const int opened = line_;
    while (!AtEnd()) {
      const char c = Next();
      if (c == quote) return absl::OkStatus();
      if (c != '\\' || quote == '\'' || AtEnd()) {
        value.push_back(c);
        continue;
      }
      const char escaped = Next();
      if (!absl::StrContains(kEscapable, escaped) && escaped != '\n') {
        value.push_back(c);
      }
      // A backslash before the end of a line removes both.
      if (escaped != '\n') value.push_back(escaped);
    }
    return Error(opened, absl::StrCat("opens a quote ", std::string(1, quote),
                                      " that is not closed"));
  }

  absl::Status Error(int line, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(source_, ": line ", line, " ", what));
  }

  const absl::string_view text_;
  const absl::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

absl::StatusOr<Environment> ParseEnvironmentFile(absl::string_view text,
                                                 absl::string_view source) {
  return Reader(text, source).Run();
}

}  // namespace lockstep
