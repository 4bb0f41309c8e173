#include <fstream>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/flags/flag_parser.h"
#include "deploy/examples/bible/verses.h"

namespace lockstep {
namespace {

struct Flags {
  std::string directory = ".";
  int64_t features = int64_t{1} << 20;
  int64_t limit = 0;
};

absl::Status Write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("cannot write ", path));
}

absl::Status MakeData(const Flags& flags) {
  absl::StatusOr<std::vector<Verse>> verses = ReadVerses(std::cin);
  if (!verses.ok()) return verses.status();
  std::string train;
  std::string test;
  std::string text;
  // Of a short form, verses from all over the book.
  const auto count = static_cast<int64_t>(verses->size());
  const int64_t step =
      flags.limit > 0 ? std::max<int64_t>(1, count / flags.limit) : 1;
  for (int64_t i = 0; i < count; i += step) {
    const Verse& verse = (*verses)[i];
    absl::StrAppend(IsHeldOut(i) ? &test : &train,
                    LibsvmLine(verse, flags.features), "\n");
    absl::StrAppend(&text, verse.text, "\n");
  }
  for (const auto& [name, contents] :
       {std::pair<const char*, const std::string*>{"train.libsvm", &train},
        {"test.libsvm", &test},
        {"verses.txt", &text}}) {
    const absl::Status status =
        Write(absl::StrCat(flags.directory, "/", name), *contents);
    if (!status.ok()) return status;
  }
  std::cout << count << " verses, ";
  if (step > 1) std::cout << "of which one in " << step << " is taken, ";
  std::cout << "in " << flags.directory << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::Flags flags;
  lockstep::FlagParser parser(
      "bible_data",
      "Makes train.libsvm, test.libsvm and verses.txt of what `bible -f "
      "gen1:1-rev22:21` prints, which is read from the standard input.");
  parser.app()
      .add_option("--directory", flags.directory, "Where the files go.")
      ->capture_default_str();
  parser.app()
      .add_option("--features", flags.features,
                  "How many features words and pairs of words are hashed to.")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  parser.app()
      .add_option("--limit", flags.limit,
                  "Take about so many verses, from all over the book; 0: all.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  const absl::Status status = lockstep::MakeData(flags);
  if (status.ok()) return 0;
  std::cerr << "bible_data: " << status.message() << "\n";
  return 1;
}
