#!/usr/bin/env bash
# make_man.sh PROGRAM_DIR OUT_DIR: writes the manual pages of all programs and
# sub-commands, compressed, from what their --help says.
set -euo pipefail
programs=$1 out=$2
mkdir -p "$out/man1" "$out/man8"

# page NAME SECTION PROGRAM WORDS...: `WORDS` choose a sub-command.
page() {
  local name=$1 section=$2 program=$programs/$3 summary
  shift 3
  summary=$("$program" "$@" --help | sed '/^Usage:/,$d' | tr '\n' ' ')
  help2man --no-info --no-discard-stderr --section="$section" \
    --name="${summary%%. *}" --help-option="$* --help" \
    --version-string="$("$programs/lockstep" --version | sed 's/.* //')" \
    "$program" |
    sed "s/^\.TH [A-Z_]*/.TH ${name^^}/; /^\.SH NAME/{n;s/^[^ ]*/$name/}" |
    gzip -9n >"$out/man$section/$name.$section.gz"
}

page lockstep 1 lockstep
for command in run status stop checkpoint pause resume set remove task export \
  nearest sample config 'config check' 'config make'; do
  # shellcheck disable=SC2086  # words on purpose
  page "lockstep-${command// /-}" 1 lockstep $command
done
page lockstep-chief 8 chief
page lockstep-ps 8 ps_server
page lockstep-worker 8 worker
