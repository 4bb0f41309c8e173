#include "worker/tables/skip_gram.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "worker/data/files/data_file.h"
#include "worker/tables/log_odds.h"

namespace lockstep::worker {
namespace {

constexpr size_t kInput = 0;
constexpr size_t kOutput = 1;
// The power of word frequencies by which word2vec draws negative words
// ("Distributed Representations of Words and Phrases", Mikolov et al. 2013).
constexpr double kDrawPower = 0.75;

// Returns a number in [0, 1): the upper 53 bits, as many as a double holds.
double Uniform(SplitMix64& random) {
  return static_cast<double>(random.Next() >> 11) * 0x1p-53;
}

std::vector<VariableSpec> Tables(const SkipGram::Options& options,
                                 int64_t words) {
  // As in word2vec: input vectors begin in [-0.5, 0.5) / dim, output vectors at
  // 0.
  const double bound = 0.5 / static_cast<double>(options.dim);
  const bool grow = options.row_limit > 0;
  const std::vector<int64_t> shape = {grow ? options.row_limit : words,
                                      options.dim};
  const RowCut cut = grow ? RowCut::kKey : options.row_cut;
  return {{"input_vectors",
           shape,
           DType::kFloat32,
           {Initializer::Kind::kUniform, -bound, bound},
           cut},
          {"output_vectors", shape, DType::kFloat32, {}, cut}};
}

// Chooses the words in `member` of the pairs as rows of the table, and replaces
// each word by the place of its row in memory.
template <typename Pair>
absl::Status ChooseWords(size_t variable, int32_t Pair::*member,
                         std::vector<Pair>& pairs, int64_t num_words,
                         ParameterMemory& memory) {
  std::vector<int64_t> words;
  words.reserve(pairs.size());
  for (const Pair& pair : pairs) words.push_back(pair.*member);
  LOCKSTEP_RETURN_IF_ERROR(memory.ChooseRows(variable, std::move(words)));
  std::vector<int32_t> places(num_words);
  int32_t next = 0;
  // A table over the vocabulary is faster here than a binary search for each
  // pair.
  for (const int64_t word : memory.rows(variable).ids) places[word] = next++;
  for (Pair& pair : pairs) pair.*member = places[pair.*member];
  return absl::OkStatus();
}

}  // namespace

SkipGram::SkipGram(const Options& options, Vocabulary vocabulary,
                   absl::string_view text)
    : options_(options),
      vocabulary_(std::move(vocabulary)),
      variables_(Tables(options, vocabulary_.size())) {
  double total = 0;
  for (int64_t w = 0; w < vocabulary_.size(); ++w) {
    total += static_cast<double>(vocabulary_.count(w));
  }
  double sum = 0;
  for (int64_t w = 0; w < vocabulary_.size(); ++w) {
    const auto count = static_cast<double>(vocabulary_.count(w));
    // The formula of the original word2vec program, which keeps a word with
    // probability sqrt(t / f) + t / f at threshold t and frequency f.
    const double ratio = options_.subsample * total / count;
    kept_.push_back(options_.subsample > 0 ? std::sqrt(ratio) + ratio : 1);
    sum += std::pow(count, kDrawPower);
    cumulative_.push_back(sum);
  }
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::vector<int32_t> words;
    for (const std::string& word : SplitWords(line)) {
      const std::optional<int64_t> id = vocabulary_.Find(word);
      if (id.has_value()) words.push_back(static_cast<int32_t>(*id));
    }
    if (!words.empty()) lines_.push_back(std::move(words));
  }
}

bool SkipGram::IsKept(int32_t word, SplitMix64& random) const {
  return kept_[word] >= 1 || Uniform(random) < kept_[word];
}

int32_t SkipGram::Draw(SplitMix64& random) const {
  const double at = Uniform(random) * cumulative_.back();
  // Without the last entry, so that rounding cannot lead behind it.
  const auto found =
      std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, at);
  return static_cast<int32_t>(found - cumulative_.begin());
}

void SkipGram::AddLine(const std::vector<int32_t>& line, SplitMix64& random) {
  std::vector<int32_t> kept;
  for (const int32_t word : line) {
    if (IsKept(word, random)) kept.push_back(word);
  }
  const auto count = static_cast<int64_t>(kept.size());
  for (int64_t i = 0; i < count; ++i) {
    // A random reach gives near words more weight, as in word2vec.
    const auto reach = static_cast<int64_t>(1 + random.Below(options_.window));
    const int64_t end = std::min(count, i + reach + 1);
    for (int64_t j = std::max<int64_t>(0, i - reach); j < end; ++j) {
      if (j == i) continue;
      pairs_.push_back({kept[i], kept[j], true});
      for (int64_t n = 0; n < options_.negatives; ++n) {
        const int32_t drawn = Draw(random);
        // A drawn word that equals the near one would teach the opposite.
        if (drawn != kept[j]) pairs_.push_back({kept[i], drawn, false});
      }
    }
  }
}

absl::Status SkipGram::Prepare(absl::Span<const int64_t> examples,
                               uint64_t seed, ParameterMemory& memory) {
  // All random choices of a pass come from its seed, so a pass that is computed
  // again has the same pairs.
  SplitMix64 random(seed);
  pairs_.clear();
  words_ = 0;
  for (const int64_t example : examples) {
    AddLine(lines_[example], random);
    words_ += static_cast<int64_t>(lines_[example].size());
  }
  LOCKSTEP_RETURN_IF_ERROR(
      ChooseWords(kInput, &Pair::input, pairs_, vocabulary_.size(), memory));
  return ChooseWords(kOutput, &Pair::output, pairs_, vocabulary_.size(),
                     memory);
}

absl::StatusOr<GradientResult> SkipGram::Compute(ParameterMemory& memory) {
  const absl::Span<const float> inputs = Floats(memory.value(kInput));
  const absl::Span<const float> outputs = Floats(memory.value(kOutput));
  const absl::Span<float> input_gradients = Floats(memory.gradient(kInput));
  const absl::Span<float> output_gradients = Floats(memory.gradient(kOutput));
  std::fill(input_gradients.begin(), input_gradients.end(), 0.0f);
  std::fill(output_gradients.begin(), output_gradients.end(), 0.0f);
  const auto dim = static_cast<size_t>(options_.dim);
  double loss = 0;
  for (const Pair& pair : pairs_) {
    const float* in = &inputs[pair.input * dim];
    const float* out = &outputs[pair.output * dim];
    float* in_gradient = &input_gradients[pair.input * dim];
    float* out_gradient = &output_gradients[pair.output * dim];
    float dot = 0;
    for (size_t i = 0; i < dim; ++i) dot += in[i] * out[i];
    const float p = 1 / (1 + std::exp(-dot));
    // The derivative of the loss with respect to the dot product.
    const float error = p - static_cast<float>(pair.near);
    for (size_t i = 0; i < dim; ++i) {
      in_gradient[i] += error * out[i];
      out_gradient[i] += error * in[i];
    }
    loss += CrossEntropy(pair.near, dot);
  }
  if (!pairs_.empty()) loss /= static_cast<double>(pairs_.size());
  return GradientResult{loss, words_};
}

absl::StatusOr<std::vector<ScoredExample>> SkipGram::Predict(
    const CheckpointReader&, const OnScored&) {
  return absl::UnimplementedError(
      "skip_gram predicts no label; `lockstep nearest` shows what it has "
      "learned");
}

absl::StatusOr<std::unique_ptr<TableWorkload>> MakeSkipGram(
    const JobConfig& job, Purpose purpose) {
  if (job.model.embedding_dim < 1 || purpose == Purpose::kScore) {
    return absl::InvalidArgumentError(
        "model.embedding_dim must be set for skip_gram, data.test_files not: "
        "it has no test set");
  }
  std::string text;
  for (const std::string& path : job.data.train_files) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string more, ReadDataText(path));
    absl::StrAppend(&text, more, "\n");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Vocabulary vocabulary,
                            Vocabulary::Make(text, job.data.min_count));
  return std::make_unique<SkipGram>(
      SkipGram::Options{job.model.embedding_dim, job.model.window,
                        job.model.negatives, job.model.subsample,
                        job.model.cut_by_div ? RowCut::kDiv : RowCut::kMod,
                        job.model.row_limit},
      std::move(vocabulary), text);
}

}  // namespace lockstep::worker
