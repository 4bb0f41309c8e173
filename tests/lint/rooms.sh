#!/usr/bin/env bash
# Each source lies in a room of rooms.txt and includes only rooms that the table
# allows; the nearest README above the room states its purpose. Tests may include
# all.
source "$(dirname "$0")/lib.sh"
cd "$1"
table=${LOCKSTEP_ROOMS:-$lint_here/rooms.txt}

# Prints the rooms, one a line with its line in the table, that no README names.
unexplained_rooms() {
  local number room above
  while IFS=: read -r number room; do
    above=$(dirname "$room")
    while [ "$above" != . ] && [ ! -f "$above/README.md" ]; do
      above=$(dirname "$above")
    done
    [ ! -f "$above/README.md" ] ||
      grep -qF "\`${room#"$above"/}\`" "$above/README.md" ||
      echo "$table:$number: $above/README.md does not say what" \
        "\`${room#"$above"/}\` is for"
  done < <(awk '!/^[# ]/ && NF { print FNR ":" $1 }' "$table")
}

lint_files '*.h' '*.cc' '*.cu' '*.cuh' |
  { mapfile -t files
    awk -v table="$table" \
      -v rooms_must_exist="$([ -f README.md ] && echo 1)" \
      -f "$lint_here/rooms.awk" "$table" "${files[@]}"
    unexplained_rooms; } |
  sort | lint_verdict
