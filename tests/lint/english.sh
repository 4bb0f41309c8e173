#!/usr/bin/env bash
# Comments of sources are in plain English: no "who" and its kin for a process,
# no sentence that begins with "Of ", and "what" at most once per 100 words. The
# places that GLOSSARY.md names exist.
source "$(dirname "$0")/lib.sh"
cd "$1"

# Folders whose comments are still to be rewritten; must become empty.
undone='chief server worker common/membership tests/conformance
        tests/unit/chief tests/unit/server tests/unit/worker
        tests/unit/common/membership tests/integration/chief
        tests/integration/server tests/integration/worker
        tests/integration/common/membership'

# Passes the files that are in none of the undone folders.
done_files() {
  local file folder
  while IFS= read -r file; do
    for folder in $undone; do
      [[ $file != "$folder"/* ]] || continue 2
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
