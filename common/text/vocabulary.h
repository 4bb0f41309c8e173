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

// The words of a line, in order and in lower case. A word is a stretch of
// letters from a to z, also with an apostrophe between two of them; whatever
// else there is separates words.
std::vector<std::string> SplitWords(absl::string_view line);

// Vocabulary numbers the words of a text: the most frequent one is 0, equally
// frequent ones are in order of their letters. It follows from the text alone,
// so that whoever has the text knows which row of a table is of which word.
//
// Threads: immutable.
class Vocabulary {
 public:
  // Of the words that occur `min_count` times or more.
  //
  //   kInvalidArgument  there is none
  static absl::StatusOr<Vocabulary> Make(absl::string_view text,
                                         int64_t min_count);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::string& word(int64_t id) const { return words_[id]; }
  int64_t count(int64_t id) const { return counts_[id]; }
  // Nothing for a word that is not in it; `word` is in lower case.
  std::optional<int64_t> Find(absl::string_view word) const;

 private:
  std::vector<std::string> words_;
  std::vector<int64_t> counts_;
  absl::flat_hash_map<std::string, int64_t> ids_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_VOCABULARY_H_
