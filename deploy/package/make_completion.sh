#!/usr/bin/env bash
# make_completion.sh LOCKSTEP: prints a completion for bash of the program
# LOCKSTEP with all its sub-commands, from what their --help says.
set -euo pipefail
program=$1

# words WORDS...: sub-commands and flags of the sub-command that WORDS choose.
words() {
  "$program" "$@" --help | awk '
    /^[A-Z][a-z]*:$/ { part = $1; next }
    part == "Subcommands:" && /^  [a-z]/ { print $1 }
    part == "Options:" && /^  -/ {
      split($1, names, ",")
      for (i in names) if (names[i] ~ /^--/) print names[i]
    }' | sort | tr '\n' ' '
}

# cases WORDS...: one line for these and one for each sub-command below.
cases() {
  local here word
  here=$(words "$@")
  printf '    "%s") words="%s" ;;\n' "$*" "${here% }"
  for word in $here; do
    case $word in
      -*) ;;
      *) cases "$@" "$word" ;;
    esac
  done
}

cat <<'HEAD'
# bash completion for lockstep(1), generated from its --help

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
cat <<'TAIL'
  esac
  case $current in
    -* | '') mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -f -- "$current") ;;
  esac
}
complete -o filenames -F _lockstep lockstep
TAIL
