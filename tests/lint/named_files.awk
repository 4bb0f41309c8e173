# Reads the names of all files of the tree from standard input, then pages and
# sources, and finds the files that they name; see named_files.sh.

BEGIN {
  name_of_file = "[a-z_0-9]+\\.(h|cc|cu|cuh|proto|py|sh|cmake|awk|md)"
  before = "(^|[ (`=])"
  after = "($|[^a-zA-Z0-9_/])"
  path = before "([a-z_0-9]+/)+" name_of_file after
  path_or_name = before "([a-z_0-9]+/)*" name_of_file after
}

FILENAME == "-" {
  for (name = $0;;) {
    there[name] = 1
    if (!sub(/^[^\/]*\//, "", name)) break
  }
  next
}

# The part of a line that is for people: all of a page, or a comment.
function text_of(line) {
  if (FILENAME ~ /\.md$/) return line
  if (is_cpp) {
    gsub(/\\./, "", line)
    gsub(/"[^"]*"/, "", line)
    return match(line, /\/\//) ? substr(line, RSTART + 2) : ""
  }
  return line ~ /^[ \t]*#/ && line !~ /^#!/ ? line : ""
}

function without_ending(name) {
  sub(/\.[a-z]+$/, "", name)
  return name
}

FNR == 1 { is_cpp = FILENAME ~ /\.(h|cc|cu|cuh|proto)$/ }

FILENAME ~ /\.md$/ && /^#include "/ {
  name = $2
  gsub(/"/, "", name)
  shown[FILENAME, without_ending(name)] = 1
}

{
  text = text_of($0)
  while (match(text, is_cpp ? path_or_name : path)) {
    name = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH - 1)
    sub(/^[ (`=]/, "", name)
    sub(/[^a-z0-9]$/, "", name)
    if (name in there) continue
    named[++n] = name
    page[n] = FILENAME
    place[n] = FILENAME ":" FNR
  }
}

END {
  for (i = 1; i <= n; ++i) {
    if ((page[i], without_ending(named[i])) in shown) continue
    print place[i] ": there is no " named[i] "; name the file that is meant"
  }
}
