# Checks the words of // comments, and the names of tests; see english.sh. Text
# in quotes or backquotes does not count.

function finish_file(   allowed, i) {
  allowed = int(words / 100)
  if (allowed < 1) allowed = 1
  for (i = allowed + 1; i <= whats; ++i) {
    print file ":" what_line[i] ": \"what\" stands " whats " times in " words \
          " words of comment; name the thing (" allowed " allowed)"
  }
}

function reset() {
  words = whats = in_raw = in_head = 0
}

# Checks the name in "TEST(Suite, Name)".
function check_name(test, line) {
  sub(/\).*/, "", test)
  sub(/.*[ ,(]/, "", test)
  if (match(test,
      /(^|[a-z0-9])(Who|Whoever|Whom|Nobody|Somebody|Everybody)([A-Z]|$)/)) {
    print FILENAME ":" line ": the test's name \"" test "\" makes a person of" \
          " a process; name the thing"
  }
}

# The text of the comment in `s`, or "".
function comment_of(s,   start) {
  gsub(/\\./, "", s)                  # escapes, so that quotes come in pairs
  gsub(/"[^"]*"|`[^`]*`/, "", s)
  if (!match(s, /(^|[ \t])\/\/+/)) return ""
  return substr(s, RSTART + RLENGTH)
}

FNR == 1 {
  if (file != "") finish_file()
  reset()
  file = FILENAME
}

# Raw strings hold text of other languages.
in_raw { if (index($0, raw_end)) in_raw = 0; next }
match($0, /R"[a-zA-Z_]*\(/) {
  raw_end = ")" substr($0, RSTART + 2, RLENGTH - 3) "\""
  if (!index(substr($0, RSTART), raw_end)) in_raw = 1
  next
}

# The name may stand on the line after the suite's.
/^TEST(_F|_P)?\(/ { in_head = 1; head = ""; head_line = FNR }
in_head {
  head = head $0
  if (index($0, ")")) { in_head = 0; check_name(head, head_line) }
}

{
  text = comment_of($0)
  if (text == "") next
  if (text ~ /^ *Of |[.!?:;] +Of /) {
    print FILENAME ":" FNR ": a sentence begins with \"Of\"; begin with its" \
          " subject"
  }
  count = split(tolower(text), word, /[^a-z']+/)
  for (i = 1; i <= count; ++i) {
    if (word[i] == "") continue
    ++words
    if (word[i] ~ /^(who|whoever|whom|nobody|somebody|everybody)$/) {
      print FILENAME ":" FNR ": \"" word[i] "\" makes a person of a process;" \
            " name the thing"
    }
    if (word[i] ~ /^what(ever)?$/) what_line[++whats] = FNR
  }
}

END { if (file != "") finish_file() }
