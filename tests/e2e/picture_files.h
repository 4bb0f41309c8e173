#ifndef LOCKSTEP_TESTS_E2E_PICTURE_FILES_H_
#define LOCKSTEP_TESTS_E2E_PICTURE_FILES_H_

#include <string>

#include "absl/status/status.h"

namespace lockstep::testing {

// The paths of a pair of IDX files.
struct PictureFiles {
  std::string images;
  std::string labels;
};

// Writes `count` pictures of 8 x 8 pixels in ten classes, always the same:
// noise with a bright bar whose position is the class, so that any model learns
// them within some hundred steps.
//
//   kInternal  the files cannot be written
absl::Status WritePictures(const PictureFiles& files, int count);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_E2E_PICTURE_FILES_H_
