#!/usr/bin/env bash
# manual_test.sh PROGRAM_DIR PACKAGE_SOURCE_DIR: makes the manual pages and the
# completion as the package has them, and looks in them for every flag that
# --help of every program and sub-command names. Needs help2man: exits with 77,
# which is "skipped", where that is missing.
set -euo pipefail
programs=$1 scripts=$2

command -v help2man >/dev/null || {
  echo "SKIPPED, NOTHING WAS PROVED: help2man is not installed" >&2
  exit 77
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0 pages=0 flags=0

complain() {
  printf 'FAILED: %s\n' "$*" >&2
  bad=$((bad + 1))
}

# flags_of PROGRAM WORDS...: -h, --help and all others, one a line.
flags_of() {
  local program=$programs/$1
  shift
  "$program" "$@" --help | grep -oE '^  -[^ ]*' | tr -d ' ' | tr ',' '\n'
}

subcommands_of() {
  "$programs/lockstep" "$@" --help |
    sed -n '/^Subcommands:/,$s/^  \([a-z][a-z_]*\).*/\1/p'
}

# page_has PAGE FLAG: grep reads to the end, or those before it fail in the pipe.
page_has() {
  gzip -dc "$work/$1.gz" | sed 's/\\-/-/g; s/\\f[A-Z]//g' |
    grep -E -- "(^|[ ,])$2([ ,:=]|\$)" >/dev/null
}

# completes WORDS... FLAG: that `lockstep WORDS...` is completed with the flag.
completes() {
  COMP_WORDS=(lockstep "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _lockstep
  # No pipe: grep ends at the first match, and printf then of SIGPIPE.
  grep -qxF -- "${@: -1}" < <(printf '%s\n' "${COMPREPLY[@]}")
}

# Those that a reader of a manual looks for, each once and with some text.
check_sections() {
  local section
  for section in 'EXIT STATUS' ENVIRONMENT FILES EXAMPLES 'SEE ALSO'; do
    gzip -dc "$work/$1.gz" | tr -d '"' | awk -v section=".SH $section" '
      /^\.SH / { here = $0 == section; count += here; next }
      here { lines += 1 }
      END { exit !(count == 1 && lines > 0) }' ||
      complain "$1 has no section $section, or two"
  done
}

# The job file's page has each field of a job, and reads without warnings.
check_job_page() {
  local field
  pages=$((pages + 1))
  gzip -dc "$work/man5/lockstep-job.5.gz" >"$work/job.5"
  sed 's/\\f/.f/g' "$work/job.5" >"$work/job.text"
  sed -nE 's/^  (repeated |optional )?[A-Za-z0-9_.]+ ([a-z_0-9]+) = [0-9]+.*/\2/p' \
    "$scripts/../../proto/lockstep/v1/"{job,strategy}.proto | sort -u >"$work/fields"
  [ "$(wc -l <"$work/fields")" -gt 100 ] || complain "job.proto has few fields"
  while IFS= read -r field; do
    grep -q "^.fB$field.fR (" "$work/job.text" ||
      complain "lockstep-job.5 has no $field"
  done <"$work/fields"
  ! command -v man >/dev/null ||
    [ -z "$(man --warnings -l "$work/job.5" 2>&1 >/dev/null)" ] ||
    complain "lockstep-job.5: $(man --warnings -l "$work/job.5" 2>&1 >/dev/null)"
}

# check_page PAGE PROGRAM WORDS...
check_page() {
  local page=$1 flag
  shift
  [ -s "$work/$page.gz" ] || { complain "there is no page $page"; return; }
  pages=$((pages + 1))
  check_sections "$page"
  for flag in $(flags_of "$@"); do
    flags=$((flags + 1))
    page_has "$page" "$flag" || complain "$page does not name $flag"
  done
}

# check_completion PROGRAM WORDS... -- TYPED...: what was typed is completed with
# the flags of the program's sub-command WORDS.
check_completion() {
  local program=() flag
  while [ "$1" != -- ]; do
    program+=("$1")
    shift
  done
  shift
  for flag in $(flags_of "${program[@]}"); do
    case $flag in
      --*) completes "$@" "$flag" ||
        complain "\`lockstep $*\` is not completed with $flag" ;;
    esac
  done
}

# check_command WORDS...: the sub-command and all below it.
check_command() {
  local words name
  words=$*
  name=lockstep${words:+-${words// /-}}
  check_page "man1/$name.1" lockstep "$@"
  check_completion lockstep "$@" -- "$@"
  for name in $(subcommands_of "$@"); do
    completes "$@" "$name" || complain "\`lockstep $*\` does not know $name"
    check_command "$@" "$name"
  done
}

"$scripts/make_man.sh" "$programs" "$work"
"$scripts/make_completion.sh" "$programs" >"$work/completion"
# shellcheck source=/dev/null
. "$work/completion"

check_command
check_page man8/lockstep-chief.8 chief
check_page man8/lockstep-ps.8 ps_server
check_page man8/lockstep-worker.8 worker
check_job_page
check_completion chief -- task chief fashion
check_completion ps_server -- task ps fashion.0
check_completion worker -- task worker fashion.0
check_completion worker -- task evaluator fashion

for words in 'task evaluator' 'set learning_rate=' 'nearest --pairs' \
  'run --log_level warning' 'task worker fashion.0 --log_level debug' \
  'run --set model.kind=' 'run --set strategy.kind=' 'run --set train_steps='; do
  # shellcheck disable=SC2086
  completes $words || complain "\`lockstep ${words% *}\` is not completed with ${words##* }"
done

# A flag that is missing is found to be.
! page_has man8/lockstep-chief.8 --state_dir ||
  complain "the chief's page names a server's flag"
! completes task chief fashion --state_dir ||
  complain "the chief is completed with a server's flag"
! completes run --set strategy= ||
  complain "--set is completed with a group of fields"
[ "$(find "$work" -name '*.gz' | wc -l)" -eq "$pages" ] ||
  complain "pages of programs that are not there"
[ "$bad" -eq 0 ] || exit 1
echo "$pages pages name $flags flags, and the completion knows them"
