#ifndef LOCKSTEP_COMMON_FLAGS_WRAP_TEXT_H_
#define LOCKSTEP_COMMON_FLAGS_WRAP_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

// Breaks the lines of `text` at spaces so that none is longer than `width`
// columns. Keeps line ends and leading spaces of `text`, and indents
// continuation lines by `indent` spaces. A word longer than a line gets a line
// of its own. One byte counts as one column.
std::string WrapText(std::string_view text, size_t width, size_t indent = 0);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FLAGS_WRAP_TEXT_H_
