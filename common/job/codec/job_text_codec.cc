#include "common/job/codec/job_text_codec.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/job/codec/field_names_codec.h"
#include "common/job/codec/job_text_scan_codec.h"
#include "common/text/excerpt.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;

constexpr int kMaxDepth = 16;  // JobConfig needs 2

// Name of the library's message -> its descriptor; nullptr for a foreign one.
const Descriptor* FindMessage(const Descriptor& root,
                              const std::string& full_name) {
  return root.file()->pool()->FindMessageTypeByName(full_name);
}

// Shortens a parser message, because the token that it quotes may be as long as
// the text. Quotes stay as they are.
std::string Cut(absl::string_view message) {
  return absl::StrReplaceAll(absl::CHexEscape(message.substr(0, 120)),
                             {{"\\\"", "\""}, {"\\'", "'"}});
}

// FirstError keeps the first error of a text, in Lockstep's words.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  FirstError(const Descriptor& root, int open_line)
      : root_(root), open_line_(open_line) {}

  // "line:column: ..." counted from 1; empty if there was no error.
  const std::string& text() const { return text_; }

  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    // Later errors are often consequences of the first.
    if (!text_.empty()) return;
    text_ = absl::StrCat(line + 1, ":", column + 1, ": ", Explain(message));
  }

 private:
  // The parser puts names in double quotes: first the type or the value.
  std::string Explain(const std::string& message) const {
    // At the end of the text, protobuf quotes an empty token.
    const bool at_end = absl::EndsWith(message, ", got: ") ||
                        absl::EndsWith(message, ", found \"\".");
    if (at_end && open_line_ > 0) {
      return absl::StrCat("the text ends, but the '{' of line ", open_line_,
                          " is not closed");
    }
    if (at_end) return "the text ends where a value or a '{' is expected";
    const std::vector<std::string> parts = absl::StrSplit(message, '"');
    // Another message, or another version of protobuf: its own words are still
    // correct.
    if (parts.size() != 5) return Cut(message);
    if (parts[2] == " has no field named ") {
      return UnknownField(parts[1], parts[3]);
    }
    if (parts[0] == "Unknown enumeration value of ") {
      return absl::StrCat(parts[3], " cannot be ", Excerpt(parts[1]),
                          NameHint(parts[1], EnumNames(root_, parts[3])));
    }
    return Cut(message);
  }

  std::string UnknownField(const std::string& type,
                           const std::string& field) const {
    const Descriptor* message = FindMessage(root_, type);
    std::string hint = PlaceOf(field);
    if (hint.empty() && message != nullptr) {
      hint = NameHint(field, FieldNames(*message));
    }
    return absl::StrCat(type, " has no field ", Excerpt(field), hint);
  }

  // Where a field is that is in a wrong group; empty: no group has it.
  std::string PlaceOf(const std::string& field) const {
    const std::vector<std::string> paths = FieldPaths(root_, field);
    if (paths.empty()) return "";
    if (paths.front() == field) return "; put it outside of all groups";
    std::vector<std::string> groups;
    groups.reserve(paths.size());
    for (const std::string& path : paths) {
      groups.push_back(absl::StrCat(
          path.substr(0, path.size() - field.size() - 1), " { ... }"));
    }
    return absl::StrCat("; put it into ", absl::StrJoin(groups, " or "));
  }

  const Descriptor& root_;
  const int open_line_;
  std::string text_;
};

}  // namespace

absl::Status ParseTextMessage(absl::string_view text, absl::string_view source,
                              google::protobuf::Message& message) {
  if (text.size() > kMaxJobTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, " has ", text.size(),
                     " bytes, but a job file may have ", kMaxJobTextBytes));
  }
  // Some editors begin a file with a byte order mark.
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  // TextFormat knows neither "60s" nor AUTO.
  LOCKSTEP_ASSIGN_OR_RETURN(
      const JobTextScan scan,
      ScanJobText(text, source, *message.GetDescriptor()));
  FirstError error(*message.GetDescriptor(), scan.open_line);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxDepth);
  google::protobuf::io::ArrayInputStream input(
      scan.text.data(), static_cast<int>(scan.text.size()));
  if (parser.Parse(&input, &message)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(source, ":", error.text()));
}

}  // namespace lockstep
