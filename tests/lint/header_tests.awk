# Reads, in this order: the table of rooms, the list of headers that are still
# untested, and all headers and sources of the tree.

FILENAME == table {
  if ($0 !~ /^[# ]/ && NF) rooms[$1] = 1
  next
}

FILENAME == undone_list {
  if ($0 !~ /^#/ && NF) undone[$1] = FNR
  next
}

function folder_of(path) {
  sub("/[^/]*$", "", path)
  return path
}

FNR == 1 {
  is_header = FILENAME ~ /\.(h|cuh)$/ && (folder_of(FILENAME) in rooms)
  if (is_header) headers[FILENAME] = 1
  room = folder_of(FILENAME)
  tests = sub("^tests/(unit|integration)/", "", room)
}

tests && /^#include "/ {
  split($0, quoted, "\"")
  if (folder_of(quoted[2]) == room) tested[quoted[2]] = 1
}

# A header that declares no function has nothing to test.
is_header {
  code = $0
  sub("//.*", "", code)
  if (code ~ /^#(if|ifndef|include|endif|pragma)/ || code ~ /= *default;/) next
  if (code ~ /\(/) has_functions[FILENAME] = 1
}

END {
  for (header in headers) {
    if (!(header in has_functions)) continue
    if (!(header in tested) && !(header in undone))
      print header ":1: no test in tests/unit/" folder_of(header) " or " \
            "tests/integration/" folder_of(header) " includes it; write one"
    if ((header in tested) && (header in undone))
      print undone_list ":" undone[header] ": " header " is tested; remove it"
  }
  for (header in undone)
    if (!(header in headers))
      print undone_list ":" undone[header] ": there is no " header
}
