#ifndef LOCKSTEP_CHIEF_PAGE_HTML_TEXT_H_
#define LOCKSTEP_CHIEF_PAGE_HTML_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::chief {

// Escapes any text for the contents of an element or for an attribute in double
// quotes: escapes the characters of HTML's syntax, and shows bytes that are not
// UTF-8 and control characters as "\n" or "\x1b".
std::string EscapeHtml(absl::string_view text);

// Returns "180 us", "12.5 ms", "1.25 s", "3 min": for times that are compared
// with each other.
std::string ShortTime(absl::Duration time);

// Returns "950 B", "12.3 MB", "1.25 GB".
std::string BytesText(double bytes);

// Returns a share of [0, 1] as "53 %".
std::string PercentText(double share);

// Returns a number a second: "2.5", "950", "1.2k".
std::string RateText(double rate);

// Returns a figure of training with four digits: "0.2084", "1.5e-05".
std::string FigureText(double value);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_HTML_TEXT_H_
