# Checks the words of pages; see english.sh. Blocks of code and text in quotes or
# backquotes do not count.

FNR == 1 { in_code = 0 }

/^ *```/ { in_code = !in_code; next }
in_code { next }

{
  text = $0
  gsub(/"[^"]*"|`[^`]*`/, "", text)
  if (text ~ /^[ *#>|-]*Of |[.!?:;|] +Of /) {
    print FILENAME ":" FNR ": a sentence begins with \"Of\"; begin with its" \
          " subject"
  }
  count = split(tolower(text), word, /[^a-z']+/)
  for (i = 1; i <= count; ++i) {
    if (word[i] ~ /^(whoever|whom|nobody|somebody|everybody)$/) {
      print FILENAME ":" FNR ": \"" word[i] "\" makes a person of a process;" \
            " name the thing"
    }
  }
}
