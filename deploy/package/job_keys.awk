# Prints "key=" for every field that --set of a job can name, from job.proto and
# the files that it imports: "train_steps=", "strategy.kind=". Fields that are
# lists of messages have no key.

/^message / { message = $2; next }
/^}/ { message = ""; next }
message == "" || /^ *\/\// { next }
/^    / && !/^  [a-z]/ { next }  # of an enum inside of the message
/^  (optional |repeated )?[A-Za-z.0-9]+ [a-z_0-9]+ = [0-9]+/ {
  repeated = $1 == "repeated"
  if ($1 == "optional" || repeated) { type = $2; name = $3 } else { type = $1; name = $2 }
  count[message]++
  field[message, count[message]] = name
  type_of[message, count[message]] = type
  list[message, count[message]] = repeated
  next
}

function walk(message, prefix,   i, type) {
  for (i = 1; i <= count[message]; ++i) {
    type = type_of[message, i]
    if (type in count) {
      if (!list[message, i]) walk(type, prefix field[message, i] ".")
    } else {
      print prefix field[message, i] "="
    }
  }
}

END { walk("JobConfig", "") }
