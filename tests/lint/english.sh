#!/usr/bin/env bash
# Comments of sources are in plain English: no "who" and its kin for a process,
# no sentence that begins with "Of ", and "what" at most once per 100 words. Pages
# follow the first two rules, except that their readers may be a "who"; names of
# tests follow the first. The places that GLOSSARY.md names exist.
source "$(dirname "$0")/lib.sh"
cd "$1"

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

{ lint_files '*.h' '*.cc' '*.cu' '*.cuh' '*.proto' |
    lint_awk english.awk
  lint_files '*.md' | { grep -v '/results/' || true; } | lint_awk english_pages.awk
  lost_places; } | lint_verdict
