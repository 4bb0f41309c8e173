#!/usr/bin/env bash
# No source above 500 lines, no function above 60, no class of the product whose
# methods have more than 400 lines over all files. Comments do not count
# there: the reason for a line stands beside it.
source "$(dirname "$0")/lib.sh"
cd "$1"
{
  lint_files '*.h' '*.cc' '*.cu' '*.cuh' | lint_awk sizes.awk
  lint_files '*.proto' '*.py' '*.sh' | xargs -r wc -l |
    awk '$2 != "total" && $1 > 500 {
      print $2 ":501: " $1 " lines; split what is above 500" }'
} | lint_verdict
