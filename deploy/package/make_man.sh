#!/usr/bin/env bash
# make_man.sh PROGRAM_DIR OUT_DIR: writes the manual pages of all programs and
# sub-commands, compressed, from what their --help says and from man/, and that of
# the job file from what `lockstep explain` knows.
set -euo pipefail
programs=$1 out=$2
here=$(dirname "$0")/man
mkdir -p "$out/man1" "$out/man5" "$out/man8"

# The lines of the page in man/examples.txt, as a section; none is a mistake.
examples() {
  awk -v page="$1" '
    /^[^ #]/ { here = $0 == page }
    here && /^    / { lines = lines substr($0, 5) "\n" }
    END {
      if (lines == "") exit 1
      gsub(/\\/, "\\e", lines)
      gsub(/-/, "\\-", lines)
      printf "[EXAMPLES]\n.nf\n%s.fi\n", lines
    }' "$here/examples.txt" || {
    echo "man/examples.txt has no example of $1" >&2
    return 1
  }
}

# page NAME SECTION PROGRAM WORDS...: `WORDS` choose a sub-command.
page() {
  local name=$1 section=$2 program=$programs/$3 summary
  local codes=command
  [ "$section" = 1 ] || codes=task
  shift 3
  examples "$name" >"$out/examples"
  summary=$("$program" "$@" --help | sed '/^Usage:/,$d' | tr '\n' ' ')
  help2man --no-info --no-discard-stderr --section="$section" \
    --name="${summary%%. *}" --help-option="$* --help" \
    --include="$here/$codes.h2m" --include="$here/common.h2m" \
    --include="$out/examples" \
    --version-string="$("$programs/lockstep" --version | sed 's/.* //')" \
    "$program" |
    sed "s/^\.TH [A-Z_]*/.TH ${name^^}/; /^\.SH NAME/{n;s/^[^ ]*/$name/}" |
    gzip -9n >"$out/man$section/$name.$section.gz"
}

page lockstep 1 lockstep
for command in run status stop checkpoint pause resume set remove task export \
  nearest simulate evaluate predict sample explain trace logs config 'config check' 'config make' \
  certs 'certs make' 'certs renew' 'certs show' 'certs check'; do
  # shellcheck disable=SC2086  # words on purpose
  page "lockstep-${command// /-}" 1 lockstep $command
done
page lockstep-chief 8 chief
page lockstep-ps 8 ps_server
page lockstep-worker 8 worker
rm "$out/examples"
"$programs/lockstep" explain --manual_page | gzip -9n >"$out/man5/lockstep-job.5.gz"
