# Shared by the checks of this folder; sourced, never run.
#
# A check is `<name>.sh ROOT`: it prints "file:line: the error and its fix" for
# each violation in the tree at ROOT and exits 1, or is silent and exits 0. selftest/<name>_test.sh proves that it catches what it claims to.
# Bash, awk and grep as a minimal Debian has them; nothing to install.

set -euo pipefail

lint_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Prints the files of the tree at the working directory whose names match one of
# the given patterns: those that git tracks or would track. Where git is no help
# (an unpacked archive, a self-test), all files outside build folders.
lint_files() {
  local file
  if [ "$(git -c safe.directory='*' rev-parse --show-toplevel 2>/dev/null)" \
      = "$(pwd -P)" ]; then
    git -c safe.directory='*' ls-files -co --exclude-standard -- "$@"
  else
    local names=() pattern
    for pattern in "$@"; do names+=(-o -name "$pattern"); done
    find . -mindepth 1 \( -name .git -o -path ./build \) -prune \
      -o -type f \( "${names[@]:1}" \) -print | sed 's|^\./||'
  fi | sort -u | while IFS= read -r file; do
    [ ! -f "$file" ] || printf '%s\n' "$file"  # tracked, but deleted
  done
}

# Runs one awk program of this folder over the files named on standard input.
lint_awk() {
  local files
  mapfile -t files
  [ "${#files[@]}" -eq 0 ] ||
    awk -f "$lint_here/$1" "${files[@]}"
}

# Passes violations through and fails if there are any.
lint_verdict() {
  ! grep .
}
