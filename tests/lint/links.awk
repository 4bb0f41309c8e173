# Prints the headings of pages, as the anchors that links name, and the links:
# "heading", page, anchor; or "link", page:line, target. See links.sh.

FNR == 1 { fenced = 0 }
/^ *```/ { fenced = !fenced }
fenced || /^ *```/ || /^    / { next }  # code

/^#+ / {
  anchor = tolower($0)
  sub(/^#+ /, "", anchor)
  gsub(/[^a-z0-9 _-]/, "", anchor)
  gsub(/ /, "-", anchor)
  print "heading\t" FILENAME "\t" anchor
}

{
  text = $0
  gsub(/`[^`]*`/, "", text)
  while (match(text, /\]\([^) ]+\)/)) {
    print "link\t" FILENAME ":" FNR "\t" substr(text, RSTART + 2, RLENGTH - 3)
    text = substr(text, RSTART + RLENGTH)
  }
}
