#ifndef LOCKSTEP_DEPLOY_EXAMPLES_BIBLE_VERSES_H_
#define LOCKSTEP_DEPLOY_EXAMPLES_BIBLE_VERSES_H_

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

// One verse, and in which half of the book it is.
struct Verse {
  std::string text;
  bool old_testament = false;
};

// Reads what `bible -f gen1:1-rev22:21` of the Debian package bible-kjv prints:
// a verse a line, "Ge1:1 In the beginning ...". The first 39 books are the Old
// Testament.
//
//   kInvalidArgument  a line that is no verse: names it; no verse at all
absl::StatusOr<std::vector<Verse>> ReadVerses(std::istream& in);

// The verse as a line of LIBSVM, features from 1 to `num_features`: its words
// and pairs of neighbouring words, by the hash of each, as often as they occur,
// and of length 1 all together.
std::string LibsvmLine(const Verse& verse, int64_t num_features);

// Whether verse number `index` is held out for testing: one of ten, by hash.
bool IsHeldOut(int64_t index);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_EXAMPLES_BIBLE_VERSES_H_
