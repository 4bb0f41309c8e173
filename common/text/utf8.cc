#include "common/text/utf8.h"

#include <cstddef>
#include <cstdint>

namespace lockstep {
namespace {

bool IsContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Length of the character that starts with `lead`; 0 if none does.
size_t LengthOf(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;  // a continuation byte, or overlong
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

// True if the second byte makes no overlong form, surrogate or too large value
// after `lead`.
bool SecondFits(uint8_t lead, uint8_t second) {
  switch (lead) {
    case 0xE0:
      return second >= 0xA0;
    case 0xED:
      return second < 0xA0;
    case 0xF0:
      return second >= 0x90;
    case 0xF4:
      return second < 0x90;
    default:
      return true;
  }
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const size_t length = LengthOf(byte(i));
    // Compares with the rest, so that no byte beyond the end is read below.
    if (length == 0 || length > text.size() - i) return false;
    if (length > 1 && !SecondFits(byte(i), byte(i + 1))) return false;
    for (size_t k = 1; k < length; ++k) {
      if (!IsContinuation(byte(i + k))) return false;
    }
    i += length;
  }
  return true;
}

std::string ToUtf8(absl::string_view text) {
  std::string plain(text);
  if (IsUtf8(text)) return plain;
  for (char& byte : plain) {
    if ((byte & 0x80) != 0) byte = '?';
  }
  return plain;
}

}  // namespace lockstep
