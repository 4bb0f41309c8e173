#ifndef LOCKSTEP_COMMON_FLAGS_WRAP_TEXT_H_
#define LOCKSTEP_COMMON_FLAGS_WRAP_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

// Breaks the lines of `text` at spaces so that none is longer than `width`
// columns. Line ends and leading spaces of `text` are kept, and a line that
// follows a break gets `indent` spaces. A word that fits on no line stays whole
// on a line of its own. One byte counts as one column.
std::string WrapText(std::string_view text, size_t width, size_t indent = 0);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FLAGS_WRAP_TEXT_H_
