# Numbers of a message or an enum that lie between those in use are reserved, so
# that no field takes the number of one that was, or of another group.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$1"

lint_files '*.proto' | lint_awk proto_numbers.awk | lint_verdict
