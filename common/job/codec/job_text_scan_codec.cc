#include "common/job/codec/job_text_scan_codec.h"

#include <cstddef>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/job/codec/auto_number_codec.h"
#include "common/text/excerpt.h"
#include "common/wire/wire_codec.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::Tokenizer;

// Silence drops the tokenizer's errors, because the parser reports them.
class Silence final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int /*line*/, google::protobuf::io::ColumnNumber /*column*/,
                const std::string& /*message*/) override {}
};

bool IsDuration(const FieldDescriptor& field) {
  return field.message_type() == google::protobuf::Duration::descriptor();
}

std::set<std::string> DurationNames(const Descriptor& root) {
  std::set<std::string> names;
  for (int i = 0; i < root.file()->message_type_count(); ++i) {
    const Descriptor& message = *root.file()->message_type(i);
    for (int j = 0; j < message.field_count(); ++j) {
      if (IsDuration(*message.field(j))) names.insert(message.field(j)->name());
    }
  }
  return names;
}

// Cursor finds the byte of a line and a column, counted as in the tokenizer: a
// tab advances to the next multiple of eight. It only moves forward.
class Cursor {
 public:
  explicit Cursor(absl::string_view text) : text_(text) {}

  size_t At(int line, int column) {
    while (offset_ < text_.size() &&
           (line_ < line || (line_ == line && column_ < column))) {
      const char c = text_[offset_++];
      if (c == '\n') {
        ++line_;
        column_ = 0;
      } else {
        column_ += c == '\t' ? 8 - column_ % 8 : 1;
      }
    }
    return offset_;
  }

 private:
  const absl::string_view text_;
  size_t offset_ = 0;
  int line_ = 0;
  int column_ = 0;
};

bool IsClosedString(const Tokenizer::Token& token) {
  return token.type == Tokenizer::TYPE_STRING && token.text.size() > 1 &&
         token.text.back() == token.text.front();
}

absl::StatusOr<std::string> SpellOut(const Tokenizer::Token& token,
                                     absl::string_view name,
                                     absl::string_view source) {
  std::string text;
  Tokenizer::ParseString(token.text, &text);
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) ||
      duration == absl::InfiniteDuration() ||
      duration == -absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ":", token.line + 1, ":", token.column + 1, ": ",
                     name, " is ", Excerpt(text),
                     ", but must be a duration such as \"60s\" or "
                     "\"1500ms\""));
  }
  const google::protobuf::Duration proto = ToProto(duration);
  return absl::StrCat("{ seconds: ", proto.seconds(), " nanos: ", proto.nanos(),
                      " }");
}

}  // namespace

absl::StatusOr<JobTextScan> ScanJobText(absl::string_view text,
                                        absl::string_view source,
                                        const Descriptor& root) {
  const std::set<std::string> durations = DurationNames(root);
  google::protobuf::io::ArrayInputStream input(text.data(),
                                               static_cast<int>(text.size()));
  Silence silence;
  Tokenizer tokens(&input, &silence);
  // As TextFormat does, so that both see the same tokens.
  tokens.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  JobTextScan scan;
  Cursor cursor(text);
  size_t copied = 0;
  std::vector<int> open;
  std::string name;  // of the field whose value may follow
  while (tokens.Next()) {
    const Tokenizer::Token& token = tokens.current();
    std::string value;  // empty: the token stays
    // An unclosed string is left to the parser, which reports its position.
    if (IsClosedString(token) && durations.contains(name)) {
      LOCKSTEP_ASSIGN_OR_RETURN(value, SpellOut(token, name, source));
    } else if (token.type == Tokenizer::TYPE_IDENTIFIER &&
               token.text == kAutoText && MayBeAuto(name)) {
      value = absl::StrCat(kAutoNumber);
    }
    if (!value.empty()) {
      const size_t begin = cursor.At(token.line, token.column);
      // Copies the text up to the token unchanged, so that the parser's lines
      // stay those of the file.
      absl::StrAppend(&scan.text, text.substr(copied, begin - copied), value);
      copied = cursor.At(token.line, token.end_column);
    }
    if (token.text == "{") open.push_back(token.line + 1);
    if (token.text == "}" && !open.empty()) open.pop_back();
    // The colon between a name and its value does not replace the name.
    if (token.text != ":") name = token.text;
  }
  absl::StrAppend(&scan.text, text.substr(copied));
  if (!open.empty()) scan.open_line = open.back();
  return scan;
}

}  // namespace lockstep
