# Reads rooms.txt, then the names of all sources, one a line. See test_mirror.sh.

FILENAME != "-" {
  if ($0 !~ /^[# ]/ && NF > 0) sees[$1] = $2
  next
}

{
  path[$0] = 1
  source_of[stem_of($0)] = 1
}

function stem_of(path) { sub(/\.[a-z]+$/, "", path); return path }

function room_of(path) { sub(/\/[^\/]*$/, "", path); return path }

# True if `stem`, or what is left of it without its last words, is a source's.
function has_source(stem) {
  while (!(stem in source_of)) {
    if (!sub(/_[^_\/]*$/, "", stem)) return 0
  }
  return 1
}

function judge_source(file,   test) {
  if (sees[room_of(file)] != "nothing" || file ~ /_main\.cc$/) return
  test = stem_of(file) "_test.cc"
  if (!(("tests/unit/" test) in path) &&
      !(("tests/integration/" test) in path)) {
    print file ":1: has no unit test; write tests/unit/" test
  }
}

function judge_test(file,   stem) {
  stem = substr(stem_of(file), length("tests/unit/") + 1)
  if (stem ~ /_(harness|fixture)$/) return
  if (!sub(/_test$/, "", stem)) {
    print file ":1: a unit test's name ends in _test.cc, a helper's in " \
          "_harness.cc or _fixture.cc"
  } else if (!has_source(stem)) {
    print file ":1: tests nothing: there is no " stem ".cc or .h"
  }
}

END {
  for (file in path) {
    if (file ~ /^(common|server|worker|chief|strategy|deploy)\/.*\.cc$/) {
      judge_source(file)
    } else if (file ~ /^tests\/unit\/.*\.cc$/) {
      judge_test(file)
    }
  }
}
