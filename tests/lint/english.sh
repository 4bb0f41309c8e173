#!/usr/bin/env bash
# Comments of sources are in plain English: no "who" and its kin for a process,
# no sentence that begins with "Of ", and "what" at most once per 100 words. The
# places that GLOSSARY.md names exist.
source "$(dirname "$0")/lib.sh"
cd "$1"

# Rooms whose comments are still to be rewritten; must become empty.
undone='chief chief/checkpoint chief/events chief/job chief/members
        chief/operators chief/plan chief/recovery chief/servers chief/steps
        server/rpc server/shard server/state/file tests/conformance/protocol
        tests/conformance/simulation'

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
