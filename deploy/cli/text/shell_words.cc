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

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("/._-+,:=@%").find(c) != absl::string_view::npos;
}

}  // namespace

std::string ShellWord(absl::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), IsPlain)) {
    return std::string(text);
  }
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string CallOf(const std::string& path, absl::string_view search_path) {
  const std::string name = fs::path(path).filename().string();
  for (const absl::string_view folder : absl::StrSplit(search_path, ':')) {
    if (folder.empty() || folder.front() != '/') continue;
    const std::string found = absl::StrCat(folder, "/", name);
    if (access(found.c_str(), X_OK) != 0) continue;
    std::error_code error;
    if (fs::equivalent(found, path, error)) return ShellWord(name);
    break;  // the shell would find another program first
  }
  return ShellWord(path);
}

}  // namespace lockstep::cli
