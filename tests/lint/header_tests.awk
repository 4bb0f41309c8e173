# Reads, in this order: the table of rooms, and all headers and sources of the
# tree.

FILENAME == table {
  if ($0 !~ /^[# ]/ && NF) rooms[$1] = 1
  next
}

function folder_of(path) {
  sub("/[^/]*$", "", path)
  return path
}

# True if `room` is `other` or a room in it.
function is_within(room, other) {
  return index(room "/", other "/") == 1
}

FNR == 1 {
  room = folder_of(FILENAME)
  is_header = FILENAME ~ /\.(h|cuh)$/ && (room in rooms)
  if (is_header) headers[FILENAME] = 1
  is_test = sub("^tests/(unit|integration)/", "", room)
}

/^#include "/ {
  split($0, quoted, "\"")
  if (is_test && is_within(room, folder_of(quoted[2]))) tested[quoted[2]] = 1
  if (!is_test && FILENAME !~ /^tests\// && folder_of(quoted[2]) != room)
    public[quoted[2]] = 1
}

END {
  for (header in headers) {
    if ((header in public) && !(header in tested))
      print header ":1: no test in tests/unit/" folder_of(header) " or " \
            "tests/integration/" folder_of(header) " includes it; write one"
  }
}
