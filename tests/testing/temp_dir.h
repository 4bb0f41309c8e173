#ifndef LOCKSTEP_TESTS_TESTING_TEMP_DIR_H_
#define LOCKSTEP_TESTS_TESTING_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "gtest/gtest.h"

namespace lockstep::testing {

// TempDir is a new private directory; the destructor removes it with its
// contents.
//
// Errors: if no directory can be created the test fails, and path() names a
//         place where nothing can be written.
class TempDir {
 public:
  TempDir() : path_(::testing::TempDir() + "/lockstep_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
      ADD_FAILURE() << "no directory can be made as " << path_
                    << "; point TEST_TMPDIR at a writable place";
      path_ = "/dev/null/no_temp_dir";
    }
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

  // Returns the path of `name` in this directory; creates nothing.
  std::string Join(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }

 private:
  std::string path_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_TEMP_DIR_H_
