#include "deploy/cli/text/shell_words.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

// Characters that mean themselves in every position of a word, so that most
// paths need no quotes.
bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("/._-+,:=@%").find(c) != absl::string_view::npos;
}

}  // namespace

std::string ShellWord(absl::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), IsPlain)) {
    return std::string(text);
  }
  // Within single quotes all but the quote itself is plain: it is closed,
  // escaped and opened again.
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string CallOf(const std::string& path, absl::string_view search_path) {
  const std::string name = fs::path(path).filename().string();
  for (const absl::string_view folder : absl::StrSplit(search_path, ':')) {
    // These depend on the working directory.
    if (folder.empty() || folder.front() != '/') continue;
    const std::string found = absl::StrCat(folder, "/", name);
    if (access(found.c_str(), X_OK) != 0) continue;
    std::error_code error;
    // Also through links, such as /bin to /usr/bin.
    if (fs::equivalent(found, path, error)) return ShellWord(name);
    break;  // the shell would find another program first
  }
  return ShellWord(path);
}

}  // namespace lockstep::cli
