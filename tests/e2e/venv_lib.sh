# To be sourced: a virtual environment with packages that no test may lack in
# silence. The caller defines skip(), which tells its argument and exits 77.

# usage: need_venv DIR "MODULES TO IMPORT" PACKAGE...
#
# Makes DIR unless it is there. It is made under another name first: one that
# was interrupted is never taken for a good one. Environments cannot be moved,
# hence the link.
need_venv() {
  venv=$1
  modules=$2
  shift 2
  venv_imports "$venv" && return
  made=$venv.made.$$
  command -v python3 >/dev/null || skip "there is no python3"
  mkdir -p "$(dirname "$venv")"
  if ! python3 -m venv "$made"; then
    rm -rf "$made"
    skip "python3 -m venv does not work"
  fi
  if ! "$made/bin/python" -m pip install --quiet "$@"; then
    rm -rf "$made"
    skip "pip cannot install $*"
  fi
  if ! venv_imports "$made"; then
    rm -rf "$made"
    skip "$modules cannot be imported"
  fi
  rm -rf "$venv"
  ln -sfn "$(basename "$made")" "$venv"
}

venv_imports() {
  [ -x "$1/bin/python" ] && "$1/bin/python" -c "import $modules" 2>/dev/null
}
