#include "common/json/bounded_json.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/text/excerpt.h"
#include "common/text/plain_text.h"

namespace lockstep {
namespace {

using nlohmann::json;

// Returns "line 1, column 17" for byte `offset`; both count from 1.
std::string Position(absl::string_view text, size_t offset) {
  // The parser counts the bytes that it has read, including the wrong one.
  const absl::string_view before =
      text.substr(0, std::min(text.size(), offset > 0 ? offset - 1 : 0));
  const size_t newline = before.rfind('\n');
  const size_t column = newline == absl::string_view::npos
                            ? before.size() + 1
                            : before.size() - newline;
  return absl::StrCat("line ",
                      1 + std::count(before.begin(), before.end(), '\n'),
                      ", column ", column);
}

// StructureChecker reads a document once and stores only the keys of open
// objects. It stops at the first fault.
class StructureChecker final : public json::json_sax_t {
 public:
  StructureChecker(absl::string_view text, size_t max_depth)
      : text_(text), max_depth_(max_depth) {}

  // The fault that stopped reading; empty if there was none.
  const std::string& fault() const { return fault_; }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(json::number_integer_t /*value*/) override {
    return true;
  }
  bool number_unsigned(json::number_unsigned_t /*value*/) override {
    return true;
  }
  bool number_float(json::number_float_t /*value*/,
                    const json::string_t& /*text*/) override {
    return true;
  }
  bool string(json::string_t& /*value*/) override { return true; }
  bool binary(json::binary_t& /*value*/) override { return true; }

  bool start_object(size_t /*size*/) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(size_t /*size*/) override { return Open(); }
  bool end_array() override { return Close(); }

  bool key(json::string_t& key) override {
    // Other parsers keep the last value silently; two values for one setting
    // are a mistake of the writer.
    if (open_.back().insert(key).second) return true;
    fault_ = absl::StrCat("has the key ", Excerpt(key),
                          " twice in one object; remove one");
    return false;
  }

  bool parse_error(size_t offset, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    fault_ = absl::StrCat("is not valid JSON at ", Position(text_, offset),
                          "; check the quotes, commas and brackets there");
    return false;
  }

 private:
  bool Open() {
    open_.emplace_back();
    if (open_.size() <= max_depth_) return true;
    fault_ = absl::StrCat("is nested deeper than ", max_depth_, " levels");
    return false;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  const absl::string_view text_;
  const size_t max_depth_;
  std::string fault_;
  std::vector<absl::flat_hash_set<std::string>> open_;  // keys seen, by level
};

absl::Status Refuse(absl::string_view source, absl::string_view fault) {
  return absl::InvalidArgumentError(absl::StrCat(source, " ", fault));
}

}  // namespace

absl::StatusOr<json> ParseBoundedJson(absl::string_view text,
                                      absl::string_view source,
                                      const JsonLimits& limits) {
  // Some editors begin a file with a byte order mark.
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  if (absl::StripAsciiWhitespace(text).empty()) {
    return Refuse(source, "is empty; write a JSON object");
  }
  if (text.size() > limits.max_bytes) {
    return Refuse(source,
                  absl::StrCat("is longer than ", limits.max_bytes, " bytes"));
  }
  // First a pass without a document: depth and duplicate keys must be checked
  // before json::parse() builds anything, since it keeps only one of two keys.
  StructureChecker checker(text, limits.max_depth);
  if (!json::sax_parse(text.begin(), text.end(), &checker)) {
    return Refuse(source, checker.fault());
  }
  // Without exceptions, which the checker makes unnecessary: it has accepted
  // the text.
  json document = json::parse(text.begin(), text.end(), nullptr, false);
  if (document.is_discarded()) return Refuse(source, "is not valid JSON");
  return document;
}

std::string DescribeJson(const json& value) {
  if (value.is_string()) return Excerpt(*value.get_ptr<const std::string*>());
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  return value.dump();
}

std::string ShowJson(const json& value) {
  constexpr size_t kMost = 64;
  return CutText(value.dump(), kMost);
}

}  // namespace lockstep
