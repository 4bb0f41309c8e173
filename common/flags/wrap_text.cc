#include "common/flags/wrap_text.h"

namespace lockstep {
namespace {

constexpr std::string_view::size_type kNone = std::string_view::npos;

// Returns the position at which to break `line`: the last space with at most
// `width` columns before it, else the first space after; never one of its
// leading spaces. kNone if there is no such space.
size_t BreakPosition(std::string_view line, size_t width) {
  const size_t first_word = line.find_first_not_of(' ');
  if (first_word == kNone) return kNone;
  const size_t space = line.rfind(' ', width);
  if (space != kNone && space > first_word) return space;
  return line.find(' ', first_word);
}

void AppendWrapped(std::string_view line, size_t width, size_t indent,
                   std::string& out) {
  std::string current(line);
  while (current.size() > width) {
    const size_t space = BreakPosition(current, width);
    const size_t next =
        space == kNone ? kNone : current.find_first_not_of(' ', space);
    // One long word, or only spaces after it: the line stays too long.
    if (next == kNone) break;
    out.append(current, 0, space).append("\n");
    current = std::string(indent, ' ').append(current, next);
  }
  out.append(current);
}

}  // namespace

std::string WrapText(std::string_view text, size_t width, size_t indent) {
  std::string out;
  for (size_t begin = 0;;) {
    const size_t end = text.find('\n', begin);
    AppendWrapped(text.substr(begin, end == kNone ? kNone : end - begin), width,
                  indent, out);
    if (end == kNone) return out;
    out.push_back('\n');
    begin = end + 1;
  }
}

}  // namespace lockstep
