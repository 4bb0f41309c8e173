#!/usr/bin/env bash
# Each source file that a page or a comment names by a path, such as
# step/gate.h, is there: the path may begin at any folder. Comments of C++ may
# also name a file alone, such as gate.h. A page that teaches its reader to
# write files may name them: those that a block of its code includes, and the
# sources of such headers.
source "$(dirname "$0")/lib.sh"
cd "$1"
mapfile -t sources < <(
  lint_files '*.md' '*.h' '*.cc' '*.cu' '*.cuh' '*.proto' '*.py' '*.sh' \
    '*.cmake' CMakeLists.txt | { grep -v '/results/' || true; })
[ "${#sources[@]}" -eq 0 ] ||
  lint_files '*' | awk -f "$lint_here/named_files.awk" - "${sources[@]}" |
    lint_verdict
