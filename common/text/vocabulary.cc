#include "common/text/vocabulary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

std::vector<std::string> SplitWords(absl::string_view line) {
  std::vector<std::string> words;
  std::string word;
  const auto is_letter = [&](size_t i) {
    return i < line.size() && absl::ascii_isalpha(line[i]);
  };
  // One index beyond the end finishes a word that ends with the line.
  for (size_t i = 0; i <= line.size(); ++i) {
    const bool inside =
        !word.empty() && i < line.size() && line[i] == '\'' && is_letter(i + 1);
    if (is_letter(i) || inside) {
      word.push_back(absl::ascii_tolower(line[i]));
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

absl::StatusOr<Vocabulary> Vocabulary::Make(absl::string_view text,
                                            int64_t min_count) {
  absl::flat_hash_map<std::string, int64_t> counts;
  for (const std::string& word : SplitWords(text)) ++counts[word];
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [word, count] : counts) {
    // Negated counts: ascending order puts the most frequent first, and equally
    // frequent words in alphabetical order.
    if (count >= min_count) order.emplace_back(-count, word);
  }
  std::sort(order.begin(), order.end());
  if (order.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no word occurs ", min_count,
                     " times; lower data.min_count, or give more text"));
  }
  Vocabulary vocabulary;
  for (auto& [count, word] : order) {
    vocabulary.ids_[word] = vocabulary.size();
    vocabulary.counts_.push_back(-count);
    vocabulary.words_.push_back(std::move(word));
  }
  return vocabulary;
}

std::optional<int64_t> Vocabulary::Find(absl::string_view word) const {
  const auto found = ids_.find(word);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace lockstep
