#ifndef LOCKSTEP_WORKER_TABLES_SKIP_GRAM_H_
#define LOCKSTEP_WORKER_TABLES_SKIP_GRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/text/vocabulary.h"
#include "worker/data/epoch_shuffle.h"
#include "worker/tables/table_workload.h"

namespace lockstep::worker {

// Skip-gram with negative sampling (Mikolov and others, 2013): the vector of a
// word, a row of "input_vectors", learns to tell the words near it in a
// sentence from words drawn at random, each a row of "output_vectors".
//
// An example is a line of the text. A batch leaves out frequent words at
// random, each word's window is drawn from 1 to `window`, and negatives are
// drawn in proportion to their count to the power of 0.75. Gradients are those
// of the sum of the loss over all pairs, since rows occur in different numbers
// of pairs; the reported loss is the mean over pairs, and `examples` counts
// words.
//
// Threads: as TableWorkload.
class SkipGram final : public TableWorkload {
 public:
  struct Options {
    int64_t dim = 64;
    int64_t window = 5;
    int64_t negatives = 5;
    double subsample = 1e-3;  // 0: leave out nothing
    RowCut row_cut = RowCut::kMod;
    int64_t row_limit = 0;  // > 0: tables grow, by the numbers of words
  };

  SkipGram(const Options& options, Vocabulary vocabulary,
           absl::string_view text);

  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  int64_t num_examples() const override {
    return static_cast<int64_t>(lines_.size());
  }
  absl::Status Prepare(absl::Span<const int64_t> examples, uint64_t seed,
                       ParameterMemory& memory) override;
  absl::StatusOr<GradientResult> Compute(ParameterMemory& memory) override;
  // Returns kUnimplemented: there is no label to predict.
  absl::StatusOr<std::vector<ScoredExample>> Predict(
      const CheckpointReader& checkpoint, const OnScored& on_scored) override;

 private:
  // A word with one that is near it, or with one that was drawn.
  struct Pair {
    int32_t input = 0;  // word, later place in memory
    int32_t output = 0;
    bool near = false;
  };
  void AddLine(const std::vector<int32_t>& line, SplitMix64& random);
  bool IsKept(int32_t word, SplitMix64& random) const;
  int32_t Draw(SplitMix64& random) const;

  const Options options_;
  const Vocabulary vocabulary_;
  const std::vector<VariableSpec> variables_;
  std::vector<std::vector<int32_t>> lines_;
  std::vector<double> kept_;        // by word: the probability to keep it
  std::vector<double> cumulative_;  // by word: weight of all words up to it
  std::vector<Pair> pairs_;         // of the batch
  int64_t words_ = 0;
};

// Reads text files; vocabulary and lines are those of all of them.
//
//   kInvalidArgument  model.embedding_dim is missing, no word is frequent
//                     enough, or the job wants to score
//   others            as reading the files
absl::StatusOr<std::unique_ptr<TableWorkload>> MakeSkipGram(
    const JobConfig& job, Purpose purpose);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TABLES_SKIP_GRAM_H_
