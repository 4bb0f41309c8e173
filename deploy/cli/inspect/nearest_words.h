#ifndef LOCKSTEP_DEPLOY_CLI_INSPECT_NEAREST_WORDS_H_
#define LOCKSTEP_DEPLOY_CLI_INSPECT_NEAREST_WORDS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/text/vocabulary.h"

namespace lockstep::cli {

// NearestWords compares the vectors of words by the cosine of the angle
// between them.
//
// Threads: immutable.
class NearestWords {
 public:
  // `vectors` has a row for each word of the vocabulary, all of one width.
  // Row i is the vector of word i. A row of zeros, a word without a vector, or
  // with a value that is not finite has the cosine 0 to each word.
  NearestWords(Vocabulary vocabulary, std::vector<float> vectors);

  // Returns the `count` words nearest to `word`, the nearest first, with their
  // cosines. `word` itself is not among them.
  //
  //   kNotFound  a word that is not in the vocabulary
  absl::StatusOr<std::vector<std::pair<std::string, double>>> Find(
      const std::string& word, int64_t count) const;

  // Returns the rank of `other` among the words nearest to `word`, from 1.
  // Errors as Find().
  //
  //   kNotFound  also: `other` is `word`
  absl::StatusOr<int64_t> Rank(const std::string& word,
                               const std::string& other) const;

 private:
  // Returns the cosines of all words with one, and their numbers, nearest
  // first.
  absl::StatusOr<std::vector<std::pair<double, int64_t>>> Order(
      const std::string& word) const;

  const Vocabulary vocabulary_;
  std::vector<float> vectors_;  // rows of length 1, or 0
  size_t width_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_INSPECT_NEAREST_WORDS_H_
