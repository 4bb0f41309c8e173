#include "tests/e2e/picture_files.h"

#include <cstdint>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"

namespace lockstep::testing {
namespace {

constexpr int kSide = 8;
constexpr int kPixels = kSide * kSide;
constexpr int kClasses = 10;
constexpr int kBarPixels = kPixels / kClasses;

void AppendBigEndian(uint32_t value, std::string& out) {
  for (int shift : {24, 16, 8, 0}) {
    out.push_back(static_cast<char>(value >> shift));
  }
}

std::string Picture(int label, std::minstd_rand& random) {
  std::string pixels(kPixels, '\0');
  for (char& pixel : pixels) pixel = static_cast<char>(random() % 64);
  for (int i = 0; i < kBarPixels; ++i) {
    pixels[label * kBarPixels + i] = static_cast<char>(192 + random() % 64);
  }
  return pixels;
}

absl::Status WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (file) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", path));
}

}  // namespace

absl::Status WritePictures(const PictureFiles& files, int count) {
  std::minstd_rand random(1);
  std::string images({0, 0, 8, 3});
  std::string labels({0, 0, 8, 1});
  AppendBigEndian(count, images);
  AppendBigEndian(kSide, images);
  AppendBigEndian(kSide, images);
  AppendBigEndian(count, labels);
  for (int i = 0; i < count; ++i) {
    const int label = i % kClasses;
    images += Picture(label, random);
    labels.push_back(static_cast<char>(label));
  }
  const absl::Status written = WriteFile(files.images, images);
  return written.ok() ? WriteFile(files.labels, labels) : written;
}

}  // namespace lockstep::testing
