#!/usr/bin/env bash
# make_completion.sh PROGRAM_DIR: prints a completion for bash of the program
# `lockstep` with all its sub-commands, from what --help says; what follows
# `lockstep task ROLE INSTANCE` is completed as for that role's program. Values
# are those that --help lists, and the fields of a job file.
set -euo pipefail
programs=$1
here=$(cd "$(dirname "$0")" && pwd)
protos=$here/../../proto/lockstep/v1

# words PROGRAM WORDS...: sub-commands and flags of the program, or of its
# sub-command that WORDS choose.
words() {
  local program=$programs/$1
  shift
  "$program" "$@" --help | awk '
    /^[A-Z][a-z]*:$/ { part = $1; next }
    part == "Subcommands:" && /^  [a-z]/ { print $1 }
    part == "Options:" && /^  -/ {
      split($1, names, ",")
      for (i in names) if (names[i] ~ /^--/) print names[i]
    }' | sort | tr '\n' ' ' | sed 's/ $//'
}

# cases WORDS...: one line for these and one for each sub-command below.
cases() {
  local here word
  here=$(words lockstep "$@")
  printf '    "%s") words="%s" ;;\n' "$*" "$here"
  for word in $here; do
    case $word in
      -*) ;;
      *) cases "$@" "$word" ;;
    esac
  done
}

# A flag ends the path, so that the instance is its last word.
task_cases() {
  printf '    "task "%s) words="%s" ;;\n' \
    'chief" "*' "$(words chief)" 'ps" "*' "$(words ps_server)" \
    'worker" "*' "$(words worker)" 'evaluator" "*' "$(words worker)"
}

# values WORDS...: "--flag a b c" for each flag of these, and of the sub-commands
# below, of which --help lists the values.
values() {
  local word
  "$programs/lockstep" "$@" --help |
    sed -nE 's/^  (-.,)?(--[a-z_]+) [A-Z]+:\{([a-z_,]+)\}.*/\2 \3/p' | tr ',' ' '
  for word in $(words lockstep "$@"); do
    case $word in
      -*) ;;
      *) values "$@" "$word" ;;
    esac
  done
}

value_cases() {
  local flag of
  { values; echo '--log_level trace debug info warning error'
    echo '--device auto cpu cuda'; echo '--shared_memory auto off'; } |
    sort -u -k 1,1 | while read -r flag of; do
      printf '    %s) words="%s" ;;\n' "$flag" "$of"
    done
  printf '    --set) words="%s" ;;\n' \
    "$(awk -f "$here/job_keys.awk" "$protos/strategy.proto" "$protos/job.proto" |
      tr '\n' ' ')"
}

cat <<'HEAD'
# bash completion for lockstep(1), generated from --help

_lockstep() {
  local current=${COMP_WORDS[COMP_CWORD]} words= path= word
  local previous=${COMP_WORDS[COMP_CWORD-1]}
  # bash cuts words at '=': what stands before it has been completed.
  [ "$current" != = ] && [ "$previous" != = ] || return 0
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      -*) break ;;
      *) path="${path:+$path }$word" ;;
    esac
  done
  case $path in
HEAD
cases
task_cases
cat <<'MIDDLE'
  esac
  case $path in
    task) words="chief ps worker evaluator $words" ;;
    set) words="replicas_to_aggregate= learning_rate= $words" ;;
  esac
  case $previous in
MIDDLE
value_cases
cat <<'TAIL'
  esac
  case $words in
    *=*) compopt -o nospace 2>/dev/null || true ;;
  esac
  case $current in
    -* | '') mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -f -- "$current") ;;
  esac
}
complete -o filenames -F _lockstep lockstep
TAIL
