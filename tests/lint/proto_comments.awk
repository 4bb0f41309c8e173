# Reads .proto files, one declaration at a time. See proto_comments.sh.

function needs_comment(text) {
  return text !~ /^(syntax|package|import|option|reserved|extensions|\})/ &&
         text !~ /^[;{]/
}

FNR == 1 { before = pending = in_block = 0 }

{
  code = $0
  comment = 0
  if (in_block) {
    comment = 1
    if (!sub(/^.*\*\//, "", code)) code = ""
    else in_block = 0
  }
  gsub(/"([^"\\]|\\.)*"/, "S", code)
  if (sub(/\/\/.*/, "", code)) comment = 1
  while (match(code, /\/\*/)) {
    comment = 1
    head = substr(code, 1, RSTART - 1)
    tail = substr(code, RSTART)
    if (match(tail, /\*\//)) {
      code = head substr(tail, RSTART + 2)
    } else {
      code = head
      in_block = 1
    }
  }
  gsub(/^[ \t]+|[ \t\r]+$/, "", code)
}

code == "" {
  if (!pending) before = comment  # a blank line parts comment and declaration
  next
}

{
  if (pending) {
    text = text " " code
    commented = commented || comment
  } else {
    text = code
    start = FNR
    commented = before || comment
  }
  before = 0
  pending = text !~ /[;{}]$/
  if (pending) next
  if (needs_comment(text)) {
    if (!commented) {
      print FILENAME ":" start ": no comment says what this is: " text
    }
    if (text ~ /[;{][ \t]*[^ \t};]/) {
      print FILENAME ":" start ": one declaration per line, so that each can " \
            "have its comment: " text
    }
  }
}
