# Reads all sources, then judges each #include. See include_boundaries.sh.

BEGIN {
  # What each folder may include besides itself.
  split("proto common server chief worker deploy tests", folders, " ")
  for (i in folders) is_folder[folders[i]] = 1
  may["server", "common"] = may["chief", "common"] = 1
  may["worker", "common"] = may["deploy", "common"] = 1
}

FNR == 1 { known[FILENAME] = 1 }

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
  target = $0
  sub(/^[^"<]*["<]/, "", target)
  sub(/[">].*/, "", target)
  n += 1
  from[n] = FILENAME
  to[n] = target
  line[n] = FNR
  edges[FILENAME] = edges[FILENAME] " " n
}

function report(i, text) { print from[i] ":" line[i] ": " text }

function is_generated(target) { return target ~ /\.pb\.h$/ }

function is_wire(target) {
  return is_generated(target) || target ~ /^(grpc|grpcpp|google\/protobuf)\//
}

# True if including `path` brings in gRPC or generated headers.
function reaches_wire(path,   list, count, i, found) {
  if (path in reach) return reach[path]
  reach[path] = 0  # an answer for cycles
  count = split(edges[path], list, " ")
  for (i = 1; i <= count && !found; ++i) {
    found = is_wire(to[list[i]]) || reaches_wire(to[list[i]])
  }
  reach[path] = found + 0
  return reach[path]
}

function folder_allows(file, target,   here, there) {
  here = folder_of(file)
  there = folder_of(target)
  if (here == "tests" || here == there || (here, there) in may) return 1
  # `lockstep sample` and `lockstep evaluate` compute as workers do, and a job is
  # checked by what they know of models.
  if (file ~ /^deploy\/lockstep\/(sample|evaluate)_command\./) {
    return target ~ /^worker\/((compute|models)\/|checkpoint_scorer\.h)/
  }
  if (file ~ /^deploy\/lockstep\/job_checks\./) {
    return target ~ /^worker\/tables\/model_kinds\./
  }
  return there == "chief" && file ~ /^worker\/(worker_main|hosted_chief)\./
}

function compute_allows(target) {
  return target ~ /^(worker\/compute|absl)\// || target ~ /^[a-z_0-9]+$/ ||
         target ~ /^(cblas|dlfcn|cuda[a-z_0-9]*|cublas[a-zA-Z_0-9]*)\.h$/
}

function judge_arrow(i,   file, target, service) {
  file = from[i]
  target = to[i]
  if (rank_of(target) <= rank_of(file)) return
  # A core may use an interface that merely has the name of a client or codec.
  service = stem_of(target) ~ /_(service|main)$/ || rank_of(target) > 1
  if (rank_of(file) > 0 || service || reaches_wire(target)) {
    report(i, "an arrow points up: " target " is nearer to main; " \
              "main -> role class -> services and clients -> cores")
  }
}

function judge(i,   file, target, sibling) {
  file = from[i]
  target = to[i]
  if (folder_of(file) == "tests") return
  sibling = file
  sub(/[^\/]*$/, "", sibling)
  if ((sibling target) in known) {
    report(i, "write the path from the project root: " sibling target)
  } else if (file ~ /^worker\/compute\//) {
    if (!compute_allows(target)) {
      report(i, "worker/compute builds alone: itself, Abseil, the standard " \
                "library, cblas, dlfcn and CUDA only, not " target)
    }
  } else if (is_wire(target)) {
    if (folder_of(file) in is_folder && !is_adapter(stem_of(file))) {
      report(i, "a core does not know the wire: move what needs " target \
                " to a service, stub, client, codec or channel")
    }
  } else if (folder_of(target) in is_folder) {
    if (!folder_allows(file, target)) {
      report(i, folder_of(file) " may not include " target)
    } else {
      judge_arrow(i)
    }
  }
}

END { for (i = 1; i <= n; ++i) judge(i) }
