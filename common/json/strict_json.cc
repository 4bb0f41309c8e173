#include "common/json/strict_json.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// Walks a text without building anything and keeps the first objection.
class Checker final : public nlohmann::json_sax<Json> {
 public:
  explicit Checker(int max_depth) : max_depth_(max_depth) {}

  const absl::Status& status() const { return status_; }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/,
                    const string_t& /*text*/) override {
    return true;
  }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(size_t /*size*/) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool start_array(size_t /*size*/) override { return Enter(); }
  bool end_array() override { return Leave(); }

  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    return Refuse(absl::StrCat("key \"", absl::CHexEscape(key.substr(0, 128)),
                               "\" appears twice in one object"));
  }

  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*cause*/) override {
    return Refuse(absl::StrCat("not valid JSON at byte ", position));
  }

 private:
  bool Enter() {
    keys_.emplace_back();
    if (keys_.size() <= static_cast<size_t>(max_depth_)) return true;
    return Refuse(
        absl::StrCat("JSON is nested deeper than ", max_depth_, " levels"));
  }

  bool Leave() {
    keys_.pop_back();
    return true;
  }

  bool Refuse(absl::string_view message) {
    status_ = absl::InvalidArgumentError(message);
    return false;
  }

  const int max_depth_;
  std::vector<absl::flat_hash_set<std::string>> keys_;  // one per open level
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Json> ParseStrictJson(absl::string_view text,
                                     const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("JSON has ", text.size(), " bytes, at most ",
                     limits.max_bytes, " are allowed"));
  }
  Checker checker(limits.max_depth);
  Json::sax_parse(text.begin(), text.end(), &checker);
  LOCKSTEP_RETURN_IF_ERROR(checker.status());
  return Json::parse(text.begin(), text.end(), /*cb=*/nullptr,
                     /*allow_exceptions=*/false);
}

}  // namespace lockstep
