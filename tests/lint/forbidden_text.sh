#!/usr/bin/env bash
# Text that a file may not contain. One row below per rule.
source "$(dirname "$0")/lib.sh"
cd "$1"

# forbid WHY REGEX [EXEMPT]: reads file names; leaves out what EXEMPT matches.
forbid() {
  local why=$1 regex=$2 exempt=${3:-^$}
  { grep -Ev "$exempt" || true; } |
    { xargs -r grep -InHE -- "$regex" || true; } |
    sed -E "s|^([^:]*:[0-9]+:).*|\1 $why|"
}

code=('*.h' '*.cc' '*.cu' '*.cuh' '*.proto' '*.cmake' CMakeLists.txt '*.sh')
self='^tests/lint/'  # names what it forbids

{
  lint_files '*.h' '*.cc' | { grep '^tests/unit/' || true; } |
    forbid 'a unit test does not sleep; make time a parameter' \
      '(sleep_for|sleep_until|SleepFor|usleep|nanosleep|[^a-z_]sleep) ?\('
  lint_files "${code[@]}" |
    forbid 'a TODO names its owner: TODO(#12) or TODO(name)' \
      '\bTODO\b($|[^(]|\([^A-Za-z0-9#])' "$self"
  lint_files "${code[@]}" |
    forbid 'write TODO(owner), or mend it' '\b(FIXME|XXX|HACK)\b' "$self"
  lint_files '*' |
    forbid 'a path of one machine' '(^|[^A-Za-z0-9_.$})~-])/(work|root|home)/' \
      "$self"
  lint_files '*.h' '*.cc' |
    forbid 'ThreadSanitizer does not see it; use common/base/mutex.h' \
      'absl::(Mutex|MutexLock|CondVar)\b' '^common/base/mutex\.h$'
  lint_files CMakeLists.txt '*.cmake' |
    forbid 'sources are listed, never globbed' '\bGLOB(_RECURSE)?\b' "$self"
  lint_files '*.h' '*.cc' |
    forbid 'name the check that is silenced: NOLINT(check-name)' \
      'NOLINT(NEXTLINE|BEGIN|END)?($|[^(A-Z])' "$self"
} | lint_verdict
