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

# A statement of a header that declares a function which has code: not one that
# other classes implement, and none that the compiler makes.
function has_code(statement) {
  if (statement !~ /\(/) return 0
  if (statement ~ /= *(0|default|delete) *$/) return 0
  if (statement ~ /^[^(]*=/ && statement !~ /operator/) return 0  # a constant
  return 1
}

FNR == 1 {
  room = folder_of(FILENAME)
  is_header = FILENAME ~ /\.(h|cuh)$/ && (room in rooms)
  if (is_header) headers[FILENAME] = 1
  is_test = sub("^tests/(unit|integration)/", "", room)
  statement = ""
}

/^#include "/ {
  split($0, quoted, "\"")
  if (is_test && folder_of(quoted[2]) == room) tested[quoted[2]] = 1
  if (!is_test && FILENAME !~ /^tests\// && folder_of(quoted[2]) != room)
    public[quoted[2]] = 1
}

is_header {
  code = $0
  sub("//.*", "", code)
  if (code ~ /^#/ || code ~ /\\$/) next
  while (match(code, /[;{}]/)) {
    statement = statement " " substr(code, 1, RSTART - 1)
    if (has_code(statement)) has_functions[FILENAME] = 1
    statement = ""
    code = substr(code, RSTART + 1)
  }
  statement = statement " " code
}

END {
  for (header in headers) {
    if (!(header in has_functions) || !(header in public)) continue
    if (!(header in tested))
      print header ":1: no test in tests/unit/" folder_of(header) " or " \
            "tests/integration/" folder_of(header) " includes it; write one"
  }
}
