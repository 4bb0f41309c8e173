#ifndef LOCKSTEP_TESTS_UNIT_COMMON_CHECKPOINT_SCRATCH_DIRECTORY_H_
#define LOCKSTEP_TESTS_UNIT_COMMON_CHECKPOINT_SCRATCH_DIRECTORY_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace lockstep {

// ScratchDirectory is an empty directory; the destructor removes it.
class ScratchDirectory {
 public:
  ScratchDirectory() : path_(::testing::TempDir() + "/checkpoint-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }

  // Returns the names of all its entries, hidden ones too.
  std::set<std::string> Names() const {
    std::set<std::string> names;
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(path_, error)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::string path_;
};

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  EXPECT_TRUE(file.flush().good()) << path;
}

// Flips one bit of one byte of a file.
inline void FlipBit(const std::string& path, size_t position) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(position));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(position));
  file.put(static_cast<char>(byte ^ 0x01));
  EXPECT_TRUE(file.flush().good()) << path;
}

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_COMMON_CHECKPOINT_SCRATCH_DIRECTORY_H_
