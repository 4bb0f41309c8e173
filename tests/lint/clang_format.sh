#!/usr/bin/env bash
# clang-format would change nothing.
source "$(dirname "$0")/lib.sh"
command -v clang-format >/dev/null || {
  echo "clang-format is missing: apt-get install clang-format"
  exit 1
}
cd "$1"
lint_files '*.h' '*.cc' '*.cu' '*.cuh' |
  { xargs -r clang-format --dry-run -Werror 2>&1 || true; } |
  awk -F: '/error:/ && !seen[$1]++ {
    print $1 ":" $2 ": not as clang-format has it; run clang-format -i " $1
  }' | sort | lint_verdict
