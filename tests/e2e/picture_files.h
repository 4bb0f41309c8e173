#ifndef LOCKSTEP_TESTS_E2E_PICTURE_FILES_H_
#define LOCKSTEP_TESTS_E2E_PICTURE_FILES_H_

#include <string>

#include "absl/status/status.h"

namespace lockstep::testing {

// Where a pair of IDX files is.
struct PictureFiles {
  std::string images;
  std::string labels;
};

// Writes `count` pictures of 8 x 8 pixels in ten classes, the same ones each
// time: noise with a bright bar whose place is the class, so that any model
// learns them within some hundred steps.
//
//   kInternal  the files cannot be written
absl::Status WritePictures(const PictureFiles& files, int count);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_E2E_PICTURE_FILES_H_
