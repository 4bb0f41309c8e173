#!/usr/bin/env bash
# package_tools_test.sh SOURCE_DIR BUILD_DIR CMAKE: the target lockstep_deb is there
# whatever is installed, and what it does first says which packages are missing. The
# package has the files that its pages name.
set -euo pipefail
source=$1 build=$2 cmake=$3

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --build "$build" --target help >"$work/targets"
grep -q '^lockstep_deb: ' "$work/targets" || fail "there is no target lockstep_deb"

# check TOOL...: as where these tools alone are.
check() {
  rm -rf "$work/bin"
  mkdir "$work/bin"
  local tool
  for tool in "$@"; do ln -s /bin/true "$work/bin/$tool"; done
  PATH=$work/bin "$BASH" "$source/deploy/package/check_tools.sh" 2>"$work/said"
}

check help2man dpkg-shlibdeps file || fail "refused: $(cat "$work/said")"
! check dpkg-shlibdeps || fail "help2man and file are not missed"
grep -qx '  apt-get install help2man file' "$work/said" || fail "$(cat "$work/said")"
! check help2man file || fail "dpkg-shlibdeps is not missed"
grep -qx '  apt-get install dpkg-dev' "$work/said" || fail "$(cat "$work/said")"

# named PAGE PATTERN: the paths of the pattern in deploy/PAGE.
named() { grep -ohE "$2" "$source/deploy/$1" | sed 's|^deploy/||; s|[.]$||' | sort -u; }

DESTDIR=$work/root "$cmake" --install "$build" --prefix /usr --component examples \
  >"$work/installed"
examples=$work/root/usr/share/doc/lockstep/examples
name='[A-Za-z0-9_./-]+'
count=0
for path in $(named README.md "deploy/(prometheus|kubernetes|Containerfile)($name)?") \
  $(named slurm/README.md 'lockstep[.]sbatch') \
  $(named kubernetes/README.md "deploy/$name") \
  $(named kubernetes/README.md "\`(examples|cert-manager)/$name" | sed 's|`|kubernetes/|'); do
  [ -e "$examples/$path" ] || fail "the package has no $path, which a page names"
  count=$((count + 1))
done
[ "$count" -ge 10 ] || fail "the pages name $count paths, not 10 or more"
"$cmake" -E compare_files "$source/deploy/kubernetes/overlays/tls/kustomization.yaml" \
  "$examples/kubernetes/overlays/tls/kustomization.yaml"
echo "what the package takes is named where it is missing, and has what its pages name"
