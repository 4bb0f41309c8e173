#!/usr/bin/env bash
# Comments of sources are in plain English: no "who" and its kin for a process,
# no sentence that begins with "Of ", and "what" at most once per 100 words. The
# places that GLOSSARY.md names exist.
source "$(dirname "$0")/lib.sh"
cd "$1"

# Rooms whose comments are still to be rewritten; must become empty.
undone='chief chief/checkpoint chief/events chief/job chief/members
        chief/operators chief/plan chief/recovery chief/servers chief/steps
        server server/calls server/rpc server/shard server/shard/parts
        server/state server/state/file server/state/init server/state/tables
        server/step server/step/compatible server/step/strict server/update
        worker/client worker/compute/cuda worker/compute/kernels worker/data
        worker/device worker/scoring worker/tables tests/conformance/compute
        tests/conformance/models tests/conformance/protocol
        tests/conformance/simulation tests/integration/chief/servers
        tests/integration/common/membership tests/integration/server/rpc
        tests/integration/worker/client tests/integration/worker/client/rpc
        tests/unit/chief/job tests/unit/chief/recovery tests/unit/chief/steps
        tests/unit/server/calls tests/unit/server/shard tests/unit/server/state
        tests/unit/server/state/file tests/unit/server/state/tables
        tests/unit/server/step tests/unit/server/step/compatible
        tests/unit/server/update tests/unit/worker/compute/cuda
        tests/unit/worker/models/zoo'

# Passes the files that are in none of the undone rooms.
done_files() {
  local file folder
  while IFS= read -r file; do
    for folder in $undone; do
      [ "${file%/*}" != "$folder" ] || continue 2
    done
    printf '%s\n' "$file"
  done
}

# Prints the rows of the glossary whose place does not exist.
lost_places() {
  local number place
  [ -f GLOSSARY.md ] || return 0
  while IFS=: read -r number place; do
    place=${place//\`/}
    [ -e "$place" ] ||
      echo "GLOSSARY.md:$number: there is no $place; name the new place"
  done < <(grep -noE '`[a-z_0-9]+(/[a-z_0-9./]+)+`' GLOSSARY.md)
}

{ lint_files '*.h' '*.cc' '*.cu' '*.cuh' '*.proto' | done_files |
    lint_awk english.awk
  lost_places; } | lint_verdict
