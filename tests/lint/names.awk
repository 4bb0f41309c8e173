# What a file's name says about its place in the tree; shared by the checks.

function folder_of(path) { return substr(path, 1, index(path, "/") - 1) }

# "server/token_queue.h" -> "server/token_queue"
function stem_of(path) { sub(/\.[a-z]+$/, "", path); return path }

function base_of(path) { sub(/.*\//, "", path); return path }

# What puts a process together out of services, clients and cores. The names are
# their only mark: to add one is a decision, and this is where it is taken.
function is_role(stem) {
  return stem ~ /^server\/ps_server$/ ||
         stem ~ /^chief\/chief(_(checkpoints|recovery|reports|stalls|steering))?$/ ||
         stem ~ /^worker\/(worker|evaluator|hosted_chief)$/ ||
         stem ~ /^deploy\/lockstep\/(launcher|(run|operator|steer)_command)$/ ||
         stem ~ /^deploy\/lockstep\/run_setup$/ ||
         stem ~ /^common\/main_support$/
}

# main -> role -> adapter -> core: each may include what has no higher rank.
function rank_of(path,   stem) {
  stem = stem_of(path)
  if (stem ~ /_main$/) return 3
  if (is_role(stem)) return 2
  if (is_adapter(stem)) return 1
  return 0
}

# Those that stand between the wire and a core: they may name gRPC and
# generated headers.
function is_adapter(stem) {
  return stem ~ /_(service|stub|client|codec|channel|server|main)$/ ||
         (stem ~ /^common\// && base_of(stem) ~ /^grpc_/)
}
