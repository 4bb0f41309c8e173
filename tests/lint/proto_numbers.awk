# Finds numbers below the largest of a message or an enum that are neither used
# nor reserved. See proto_numbers.sh.

function open_block(kind, name) {
  ++depth
  kinds[depth] = kind
  names[depth] = name
  lines[depth] = FNR
  largest[depth] = 0
}

# Fields of a oneof are those of the message around it.
function owner(  i) {
  for (i = depth; kinds[i] == "oneof"; --i) {}
  return i
}

function take(first, last,  i, n) {
  i = owner()
  for (n = first; n <= last; ++n) taken[i, n] = 1
}

function close_block(  n, missing) {
  if (kinds[depth] == "message" || kinds[depth] == "enum") {
    for (n = 1; n < largest[depth]; ++n) {
      if (!((depth, n) in taken)) missing = missing " " n
    }
    if (missing != "") {
      printf "%s:%d: %s has no number%s; reserve what is not in use\n",
             FILENAME, lines[depth], names[depth], missing
    }
    for (n = 0; n <= 1000; ++n) delete taken[depth, n]
  }
  --depth
}

FNR == 1 { depth = 0 }

{ sub(/\/\/.*/, "") }

/^ *(message|enum|oneof|service) / {
  open_block($1, $2)
  if ($0 ~ /\}/) close_block()
  next
}

/^ *rpc .*\{ *$/ { open_block("rpc", $2); next }

/^ *reserved [0-9]/ {
  text = $0
  sub(/^ *reserved /, "", text)
  sub(/;.*/, "", text)
  count = split(text, ranges, / *, */)
  for (k = 1; k <= count; ++k) {
    split(ranges[k], ends, / to /)
    take(ends[1] + 0, ends[2] == "" ? ends[1] + 0 : ends[2] + 0)
  }
  next
}

match($0, /= *[0-9]+ *(\[|;)/) && depth > 0 {
  number = substr($0, RSTART + 1, RLENGTH - 2) + 0
  take(number, number)
  if (number > largest[owner()]) largest[owner()] = number
}

/^ *\}/ && depth > 0 { close_block() }
