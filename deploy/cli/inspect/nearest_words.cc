#include "deploy/cli/inspect/nearest_words.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::cli {

NearestWords::NearestWords(Vocabulary vocabulary, std::vector<float> vectors)
    : vocabulary_(std::move(vocabulary)),
      vectors_(std::move(vectors)),
      width_(vectors_.size() / static_cast<size_t>(vocabulary_.size())) {
  for (size_t row = 0; row + width_ <= vectors_.size() && width_ > 0;
       row += width_) {
    double square = 0;
    for (size_t i = 0; i < width_; ++i) {
      square += double{vectors_[row + i]} * vectors_[row + i];
    }
    // A row of zeros has no direction, nor has one with NaN or infinity, whose
    // cosines would spoil the order of all others.
    const bool directed = square > 0 && std::isfinite(square);
    for (size_t i = 0; i < width_; ++i) {
      float& value = vectors_[row + i];
      value = directed ? static_cast<float>(value / std::sqrt(square)) : 0.0f;
    }
  }
}

absl::StatusOr<std::vector<std::pair<double, int64_t>>> NearestWords::Order(
    const std::string& word) const {
  const std::optional<int64_t> id = vocabulary_.Find(word);
  if (!id.has_value()) {
    return absl::NotFoundError(absl::StrCat("\"", word, "\" is none of the ",
                                            vocabulary_.size(),
                                            " words; it may be too rare"));
  }
  const float* of_word = &vectors_[*id * width_];
  std::vector<std::pair<double, int64_t>> order;
  for (int64_t other = 0; other < vocabulary_.size(); ++other) {
    if (other == *id) continue;
    double cosine = 0;
    for (size_t i = 0; i < width_; ++i) {
      // Rows have length 1, so that the product is the cosine.
      cosine += double{of_word[i]} * vectors_[other * width_ + i];
    }
    order.emplace_back(cosine, other);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    // Equal cosines, such as those of words without a vector, are ordered by
    // word, so that each call answers the same.
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  });
  return order;
}

absl::StatusOr<std::vector<std::pair<std::string, double>>> NearestWords::Find(
    const std::string& word, int64_t count) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto order, Order(word));
  std::vector<std::pair<std::string, double>> nearest;
  for (const auto& [cosine, id] : order) {
    if (static_cast<int64_t>(nearest.size()) >= count) break;
    nearest.emplace_back(vocabulary_.word(id), cosine);
  }
  return nearest;
}

absl::StatusOr<int64_t> NearestWords::Rank(const std::string& word,
                                           const std::string& other) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto order, Order(word));
  for (size_t i = 0; i < order.size(); ++i) {
    if (vocabulary_.word(order[i].second) == other) {
      return static_cast<int64_t>(i) + 1;
    }
  }
  return absl::NotFoundError(absl::StrCat("\"", other,
                                          "\" is no other of the words than \"",
                                          word, "\"; it may be too rare"));
}

}  // namespace lockstep::cli
