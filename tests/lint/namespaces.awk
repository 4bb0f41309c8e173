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

# A name of a namespace stands for one type in all files: with two definitions a
# program that links both is broken, which no compiler or linker tells.
FNR == 1 { depth = 0; unnamed = 0; scope = "" }

/^(inline )?namespace .*\{ *$/ {
  ++depth
  scopes[depth] = scope
  if ($0 ~ /^namespace \{/) ++unnamed
  inner = $0
  sub(/^(inline )?namespace */, "", inner)
  sub(/ *\{.*$/, "", inner)
  if (inner != "") scope = scope == "" ? inner : scope "::" inner
}

/^\}  \/\/ namespace/ && depth > 0 {
  scope = scopes[depth--]
  if ($0 ~ /namespace *$/) unnamed = unnamed > 0 ? unnamed - 1 : 0
}

# Bodies may begin on a later line; a declaration alone ends with a semicolon.
!unnamed && /^(class|struct|union|enum class|enum) [A-Za-z]/ && !/;[^}]*$/ {
  type = $0
  sub(/^(class|struct|union|enum class|enum) ([A-Z_]+\([^)]*\) )?/, "", type)
  sub(/[^A-Za-z0-9_:<].*$/, "", type)
  if (type ~ /</) next  # a specialization
  type = scope "::" type
  if (!(type in first)) {
    first[type] = FILENAME ":" FNR
  } else if (index(first[type], FILENAME ":") != 1) {
    printf "%s:%d: %s is defined in %s, too; rename one\n", FILENAME, FNR,
           type, first[type]
  }
}
