# Each program has one namespace: code of chief/, server/ and worker/ stands in
# lockstep::chief, ::server and ::worker, that of deploy/cli/ in lockstep::cli,
# and that of common/ in lockstep. Two programs may then use one word; within a
# namespace, one word is one type.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$1"

lint_files '*.h' '*.cc' '*.cu' '*.cuh' |
  { grep -E '^(chief|server|worker|common|deploy|strategy)/' || true; } |
  lint_awk namespaces.awk | lint_verdict
