# Finds namespaces of another program than the folder's.
FNR == 1 {
  split(FILENAME, folder, "/")
  name = folder[1] == "deploy" ? "cli" : folder[1]
  wanted = name == "common" ? "lockstep" : "lockstep::" name
}

/^(inline )?namespace lockstep/ {
  found = $0
  sub(/^(inline )?namespace /, "", found)
  sub(/ *\{.*$/, "", found)
  if (name == "common" ? found ~ /^lockstep::(chief|server|worker|cli)/ \
                       : index(found "::", wanted "::") != 1) {
    printf "%s:%d: namespace %s; code of %s belongs in %s\n", FILENAME, FNR,
           found, folder[1], wanted
  }
}
