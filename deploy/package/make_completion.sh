#!/usr/bin/env bash
# make_completion.sh PROGRAM_DIR: prints a completion for bash of the program
# `lockstep` with all its sub-commands, from what --help says; what follows
# `lockstep task ROLE INSTANCE` is completed as for that role's program.
set -euo pipefail
programs=$1

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

cat <<'HEAD'
# bash completion for lockstep(1), generated from --help

_lockstep() {
  local current=${COMP_WORDS[COMP_CWORD]} words= path= word
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
cat <<'TAIL'
  esac
  case $current in
    -* | '') mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -f -- "$current") ;;
  esac
}
complete -o filenames -F _lockstep lockstep
TAIL
