#!/usr/bin/env bash
# Each link of a page leads to a file or folder of the tree, and to a heading
# that is there.
source "$(dirname "$0")/lib.sh"
cd "$1"
found=$(lint_files '*.md' | lint_awk links.awk)

# heading_exists PAGE ANCHOR
heading_exists() { grep -qxF "heading"$'\t'"$1"$'\t'"$2" <<<"$found"; }

{ grep '^link' <<<"$found" || true; } |
  while IFS=$'\t' read -r _ place target; do
    case $target in http://* | https://*) continue ;; esac
    page=${place%:*} path=${target%%#*} anchor=
    [ "$target" = "$path" ] || anchor=${target#*#}
    to=$page
    [ -z "$path" ] ||
      to=$(realpath -ms --relative-to=. "$(dirname "$page")/$path")
    if [ ! -e "$to" ]; then
      echo "$place: there is no $to; name it from this page's folder"
    elif [ -n "$anchor" ] && ! heading_exists "$to" "$anchor"; then
      echo "$place: $to has no heading #$anchor; name the one that it has"
    fi
  done | lint_verdict
