#include "common/flags/nearest_match.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"

namespace lockstep {
namespace {

std::string Fold(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) c = c == '-' ? '_' : absl::ascii_tolower(c);
  return folded;
}

size_t AllowedMistakes(std::string_view candidate) {
  // Linear in the length: more mistakes are likely in a long name.
  return std::max<size_t>(1, candidate.size() / 3);
}

// True if the last two letters of a[0, i) and b[0, j) are swapped.
bool Swapped(const std::string& a, size_t i, const std::string& b, size_t j) {
  return i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
}

// Edit distance with swaps of neighbours (optimal string alignment). Only three
// rows of the table are kept.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> above(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    // Rotates the rows: `row` is overwritten, and the one before it becomes
    // `above`.
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1,
                         above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (Swapped(a, i, b, j)) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// False if the lengths alone differ too much. The caller skips such pairs,
// which also bounds the work for a very long name.
bool LengthsFit(std::string_view name, std::string_view candidate) {
  const size_t allowed = AllowedMistakes(candidate);
  return name.size() <= candidate.size() + allowed &&
         candidate.size() <= name.size() + allowed;
}

}  // namespace

std::optional<std::string> NearestMatch(
    std::string_view name, absl::Span<const std::string> candidates) {
  std::optional<std::string> nearest;
  size_t nearest_distance = 0;
  for (const std::string& candidate : candidates) {
    if (!LengthsFit(name, candidate)) continue;
    const size_t distance = EditDistance(Fold(name), Fold(candidate));
    if (distance > AllowedMistakes(candidate)) continue;
    // As many mistakes as letters: the names have nothing in common.
    if (distance >= std::max<size_t>(1, candidate.size())) continue;
    if (nearest.has_value() && distance >= nearest_distance) continue;
    nearest = candidate;
    nearest_distance = distance;
  }
  return nearest;
}

std::string DidYouMean(std::string_view name,
                       absl::Span<const std::string> candidates) {
  constexpr size_t kLongest = 32;
  if (name.size() > kLongest) return "";
  const std::optional<std::string> near = NearestMatch(name, candidates);
  return near.has_value() ? "; did you mean " + *near + "?" : "";
}

}  // namespace lockstep
