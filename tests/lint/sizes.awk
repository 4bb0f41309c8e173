# Finds functions by their braces: no compiler, so it errs on odd macros, but
# not on what clang-format has laid out. See sizes.sh.

function reset() {
  depth = function_depth = in_comment = in_raw = in_macro = 0
  text = ""
}

function finish_file() {
  if (lines > 500) {
    print file ":501: " lines " lines; split what is above 500"
  }
}

FNR == 1 {
  finish_file()
  reset()
  file = FILENAME
}

# Cuts "template <...>" from the front, however deeply it nests.
function without_template(s,   i, c, open) {
  gsub(/->|<<|>=|<=/, "", s)
  while (match(s, /^ *template *</)) {
    open = 1
    for (i = RLENGTH + 1; i <= length(s) && open > 0; ++i) {
      c = substr(s, i, 1)
      open += (c == "<") - (c == ">")
    }
    s = substr(s, i)
  }
  return s
}

# True if the brace behind `s` opens a namespace or a type.
function opens_scope(s) {
  if (!match(s, /^ *(inline +)?[a-z]+/)) return 0
  s = substr(s, 1, RLENGTH)
  return s ~ /(namespace|class|struct|union|enum|extern|typedef)$/
}

# The class that `s` opens, or "".
function class_opened(s) {
  if (!match(s, /^ *(class|struct) +[A-Za-z_0-9]+/)) return ""
  s = substr(s, 1, RLENGTH)
  sub(/^ *(class|struct) +/, "", s)
  return s
}

# The class of the method that `s` begins, or "" for a free function.
function class_of_method(s,   i, name) {
  for (i = depth - 1; i > 0; --i) {
    if (class_at[i] != "") return class_at[i]
  }
  sub(/\(.*/, "", s)
  if (!match(s, /[A-Za-z_0-9]+(<[^<>]*>)?(::[A-Za-z_0-9~]+)+ *$/)) return ""
  name = substr(s, RSTART, RLENGTH)
  sub(/[:<].*/, "", name)
  return name
}

function open_brace(   head) {
  depth += 1
  class_at[depth] = ""
  if (function_depth == 0) {
    head = without_template(text)
    if (opens_scope(head)) {
      class_at[depth] = class_opened(head)
    } else if (head ~ /\(/ && head !~ /= *$/) {
      function_depth = depth
      opened = FNR
      comments = 0
      owner = class_of_method(head)
    }
  }
  text = ""
}

# Classes of one name in two folders of the top are two classes. Those of tests
# are not counted.
function count_method(   top) {
  if (owner == "" || FILENAME ~ /^tests\//) return
  top = FILENAME
  sub(/\/.*/, "", top)
  if (!((top, owner) in of_class)) first_file[top, owner] = FILENAME
  of_class[top, owner] += FNR - opened + 1 - comments
}

function close_brace() {
  if (function_depth == depth) {
    function_depth = 0
    count_method()
    if (FNR - opened - comments > 60) {
      print FILENAME ":" opened ": function of " FNR - opened - comments \
            " lines; split what is above 60"
    }
  }
  depth -= 1
  text = ""
}

# The line without literals and comments.
function code_of(s,   out, mark) {
  if (in_raw) {
    if (!(mark = index(s, raw_end))) return ""
    s = substr(s, mark + length(raw_end))
    in_raw = 0
  }
  gsub(/[0-9a-fA-F]'[0-9a-fA-F]/, "0", s)
  out = ""
  while (s != "") {
    if (in_comment) {
      if (!(mark = index(s, "*/"))) return out
      s = substr(s, mark + 2)
      in_comment = 0
    } else if (!match(s, /R"[^ ()\\]*\(|"|'|\/\/|\/\*/)) {
      return out s
    } else {
      out = out substr(s, 1, RSTART - 1)
      mark = substr(s, RSTART, RLENGTH)
      s = substr(s, RSTART + RLENGTH)
      if (mark == "//") return out
      if (mark == "/*") {
        in_comment = 1
      } else if (mark ~ /^R/) {
        raw_end = ")" substr(mark, 3, length(mark) - 3) "\""
        if (!(mark = index(s, raw_end))) {
          in_raw = 1
          return out
        }
        s = substr(s, mark + length(raw_end))
      } else if (mark == "\"") {
        match(s, /^([^"\\]|\\.)*"?/)
        s = substr(s, RLENGTH + 1)
      } else {
        match(s, /^([^'\\]|\\.)*'?/)
        s = substr(s, RLENGTH + 1)
      }
    }
  }
  return out
}

{
  lines = FNR
  if (in_macro || (!in_raw && !in_comment && /^[ \t]*#/)) {
    in_macro = /\\$/
    next
  }
  if (/^ *\/\//) comments += 1
  code = code_of($0)
  while (match(code, /[{};]/)) {
    text = text " " substr(code, 1, RSTART - 1)
    mark = substr(code, RSTART, 1)
    code = substr(code, RSTART + 1)
    if (mark == "{") open_brace()
    else if (mark == "}") close_brace()
    else text = ""
  }
  text = text " " code
}

END {
  finish_file()
  for (class in of_class) {
    if (of_class[class] <= 400) continue
    split(class, names, SUBSEP)
    print first_file[class] ":1: the methods of " names[2] " have " \
          of_class[class] " lines over all files; split by role what is above 400"
  }
}
