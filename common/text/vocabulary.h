#ifndef LOCKSTEP_COMMON_TEXT_VOCABULARY_H_
#define LOCKSTEP_COMMON_TEXT_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Returns the words of a line, in order and in lower case. A word is a run of
// letters a to z, which may have an apostrophe between two of them; all other
// characters separate words.
std::vector<std::string> SplitWords(absl::string_view line);

// Vocabulary numbers the words of a text: the most frequent word is 0; equally
// frequent words are in alphabetical order. It depends on the text alone, so
// every process with the text knows the word of each table row.
//
// Threads: immutable.
class Vocabulary {
 public:
  // Builds it from the words that occur `min_count` times or more.
  //
  //   kInvalidArgument  there is no such word
  static absl::StatusOr<Vocabulary> Make(absl::string_view text,
                                         int64_t min_count);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::string& word(int64_t id) const { return words_[id]; }
  int64_t count(int64_t id) const { return counts_[id]; }
  // Returns the number of `word`, which must be in lower case; nothing if it is
  // not in the vocabulary.
  std::optional<int64_t> Find(absl::string_view word) const;

 private:
  std::vector<std::string> words_;
  std::vector<int64_t> counts_;
  absl::flat_hash_map<std::string, int64_t> ids_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_VOCABULARY_H_
