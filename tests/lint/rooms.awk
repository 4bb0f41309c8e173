# Reads rooms.txt, then all sources, and judges rooms and #includes. See rooms.sh.

BEGIN {
  for (i = 2; i < ARGC; ++i) {
    if (!is_product(ARGV[i])) continue
    known[ARGV[i]] = 1
    files[room_of(ARGV[i])] += 1
    if (!(room_of(ARGV[i]) in named)) named[room_of(ARGV[i])] = ARGV[i]
  }
}

FILENAME == table {
  if ($0 ~ /^#/ || NF == 0) next
  first = 1
  if ($0 !~ /^ /) {
    room = $1
    if (room in sees) print table ":" FNR ": " room " is listed twice"
    place[room] = ++rooms
    row[room] = FNR
    sees[room] = $2
    if ($2 !~ /^(nothing|others|messages|grpc)$/) {
      print table ":" FNR ": a room sees nothing, others, messages or grpc, not " $2
    }
    first = 3
  }
  for (i = first; i <= NF; ++i) {
    may[room, $i] = FNR
    if (!($i in place) || place[$i] >= place[room]) {
      print table ":" FNR ": " room " may include only rooms above it, not " $i
    }
  }
  next
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
  if (!is_product(FILENAME)) next
  target = $0
  sub(/^[^"<]*["<]/, "", target)
  sub(/[">].*/, "", target)
  n += 1
  from[n] = FILENAME
  to[n] = target
  line[n] = FNR
  edges[FILENAME] = edges[FILENAME] " " n
}

function is_product(path) {
  return path ~ /^(common|server|chief|worker|deploy|strategy|python)\//
}

function is_ours(path) { return is_product(path) || path ~ /^(tests|proto)\// }

function room_of(path) { sub(/\/[^\/]*$/, "", path); return path }

function report(i, text) { print from[i] ":" line[i] ": " text }

# 2 for gRPC and its stubs, 1 for generated messages and protobuf, else 0.
function wire(target) {
  if (target ~ /^(grpc|grpcpp)\// || target ~ /\.grpc\.pb\.h$/) return 2
  return target ~ /^google\/protobuf\// || target ~ /\.pb\.h$/
}

# True if including `path` brings in gRPC or generated headers.
function reaches_wire(path,   list, count, i, found) {
  if (path in reach) return reach[path]
  reach[path] = 0  # an answer for cycles
  count = split(edges[path], list, " ")
  for (i = 1; i <= count && !found; ++i) {
    found = wire(to[list[i]]) || reaches_wire(to[list[i]])
  }
  reach[path] = found + 0
  return reach[path]
}

function may_see(room, target) {
  if (sees[room] == "grpc") return 1
  return sees[room] == "messages" && wire(target) < 2
}

function may_include(room, other) {
  return room == other || (room, other) in may ||
         (other ~ /^common\/(text|base)$/ && place[other] < place[room] &&
          room !~ /^worker\/compute/)
}

function compute_allows(target) {
  return target ~ /^absl\// || target ~ /^[a-z_0-9]+$/ ||
         target ~ /^(cblas|dlfcn|mma|cuda[a-z_0-9]*|cublas[a-zA-Z_0-9]*)\.h$/
}

function judge(i,   here, there) {
  here = room_of(from[i])
  there = room_of(to[i])
  if (!(here in sees)) return
  if ((here "/" to[i]) in known) {
    report(i, "write the path from the project root: " here "/" to[i])
  } else if (here ~ /^worker\/compute/ && !is_ours(to[i])) {
    if (!compute_allows(to[i])) {
      report(i, "worker/compute builds alone: itself, Abseil, the standard " \
                "library, cblas, dlfcn and CUDA only, not " to[i])
    }
  } else if (wire(to[i])) {
    if (!may_see(here, to[i])) {
      report(i, here " sees " sees[here] ": move what needs " to[i] \
                " to a room that sees it, or change tests/lint/rooms.txt")
    }
  } else if (is_ours(to[i])) {
    used[here, there] = 1
    if (!may_include(here, there)) {
      report(i, here " may not include " there "; see tests/lint/rooms.txt")
    } else if (sees[here] == "nothing" && reaches_wire(to[i])) {
      report(i, here " sees nothing, but " to[i] " brings in gRPC or " \
                "generated headers")
    }
  }
}

END {
  for (room in files) {
    if (!(room in sees)) {
      print named[room] ":1: " room " is no room of tests/lint/rooms.txt"
    } else if (files[room] > 26) {
      print named[room] ":1: " room " has " files[room] \
            " sources, a room at most 26: which purpose is a room of its own?"
    }
  }
  for (room in sees) {
    if (!(room in files) && rooms_must_exist) {
      print table ":" row[room] ": there is no room " room
    }
  }
  for (i = 1; i <= n; ++i) judge(i)
  for (arrow in may) {
    if (!(arrow in used) && rooms_must_exist) {
      split(arrow, ends, SUBSEP)
      print table ":" may[arrow] ": " ends[1] " does not include " ends[2] \
            ": take it out"
    }
  }
}
