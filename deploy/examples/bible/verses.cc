#include "deploy/examples/bible/verses.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/fingerprint.h"
#include "common/text/vocabulary.h"

namespace lockstep {
namespace {

constexpr int kOldBooks = 39;

// The letters before the chapter: "1Sam" of "1Sam3:4"; empty if there is none.
std::string BookOf(const std::string& place) {
  const size_t colon = place.find(':');
  if (colon == std::string::npos) return "";
  size_t end = colon;
  while (end > 0 && absl::ascii_isdigit(place[end - 1])) --end;
  return end == colon ? "" : place.substr(0, end);
}

int64_t FeatureOf(const std::string& words, int64_t num_features) {
  Fingerprint hash;
  hash.Add(words);
  return 1 +
         static_cast<int64_t>(hash.Below(static_cast<uint64_t>(num_features)));
}

}  // namespace

absl::StatusOr<std::vector<Verse>> ReadVerses(std::istream& in) {
  std::vector<Verse> verses;
  std::string book;
  int books = 0;
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    const std::string of = BookOf(line.substr(0, space));
    if (space == std::string::npos || of.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, " is \"", line.substr(0, 40),
                       "\"; give what `bible -f gen1:1-rev22:21` prints"));
    }
    if (of != book) ++books;
    book = of;
    verses.push_back({line.substr(space + 1), books <= kOldBooks});
  }
  if (verses.empty()) {
    return absl::InvalidArgumentError(
        "there is no verse; give what `bible -f gen1:1-rev22:21` prints, of "
        "the packages bible-kjv and bible-kjv-text");
  }
  return verses;
}

std::string LibsvmLine(const Verse& verse, int64_t num_features) {
  const std::vector<std::string> words = SplitWords(verse.text);
  std::map<int64_t, double> counts;
  for (size_t i = 0; i < words.size(); ++i) {
    counts[FeatureOf(words[i], num_features)] += 1;
    if (i == 0) continue;
    counts[FeatureOf(absl::StrCat(words[i - 1], " ", words[i]),
                     num_features)] += 1;
  }
  double square = 0;
  for (const auto& [feature, count] : counts) square += count * count;
  std::string line = verse.old_testament ? "+1" : "-1";
  for (const auto& [feature, count] : counts) {
    absl::StrAppend(&line, " ", feature, ":",
                    static_cast<float>(count / std::sqrt(square)));
  }
  return line;
}

bool IsHeldOut(int64_t index) {
  Fingerprint hash;
  hash.Add(static_cast<uint64_t>(index));
  return (hash.value() >> 32) % 10 == 0;
}

}  // namespace lockstep
