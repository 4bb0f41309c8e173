# Hosts on one machine, to be sourced by tests: each is a network namespace with
# a name that the others resolve, and a cable to a bridge in one more namespace,
# so that nothing of the machine's own network is touched.
#
#   hosts_or_skip          exits with 77, which is "skipped", where namespaces
#                          cannot be made
#   hosts_make NAME...     makes the hosts; hosts_end, to be called at the end,
#                          ends what runs in them and takes them away
#   on_host NAME COMMAND   runs a command on a host; `exec`s, so that `&` gives
#                          the process id of the command itself
#   host_address NAME      prints its address
#   host_rename NAME NEW   gives the host the name NEW, in place of the host that
#                          had it
#   host_slow NAME RATE    limits what the host sends, e.g. to 20mbit (tc tbf)
#   host_fast NAME         takes the limit away
#   host_cut NAME          pulls its cable; host_mend puts it back
#   hosts_firewall_or_skip   as hosts_or_skip, where iptables cannot be had
#   host_deafen NAME OTHER   drops what NAME gets from OTHER, which hears it all
#                            the same; host_hear NAME OTHER takes that back
#
# Environment: hosts_tag, a few letters that no other test at the same time has
# (default: made of the process id).

hosts_tag=${hosts_tag:-ls$$}
hosts_directory=
hosts_names=()

hosts_skip() {
  printf 'SKIPPED, NOTHING WAS PROVED: %s\n' "$*" >&2
  exit 77
}

hosts_or_skip() {
  [ "$(id -u)" -eq 0 ] || hosts_skip "this takes root"
  local tool
  for tool in ip tc unshare; do
    command -v "$tool" >/dev/null || hosts_skip "$tool is not installed"
  done
  local try=$hosts_tag-try made=yes
  ip netns add "$try" 2>/dev/null ||
    hosts_skip "network namespaces cannot be made here"
  { ip -n "$try" link add bridge type bridge &&
    ip -n "$try" link add one type veth peer name other &&
    tc -n "$try" qdisc add dev one root tbf rate 20mbit burst 64kb \
      latency 400ms &&
    ip netns exec "$try" unshare --mount \
      mount --bind /etc/hostname /etc/hosts; } 2>/dev/null || made=no
  ip netns delete "$try"
  [ "$made" = yes ] ||
    hosts_skip "bridges, veth pairs, tbf or mounts cannot be made here"
}

hosts_make() {
  hosts_names=("$@")
  hosts_directory=$(mktemp -d /tmp/lockstep-hosts-XXXXXX)
  echo "127.0.0.1 localhost" >"$hosts_directory/hosts"
  ip netns add "$hosts_tag-net"
  ip -n "$hosts_tag-net" link add bridge type bridge
  ip -n "$hosts_tag-net" link set bridge up
  local number=0 name
  for name in "$@"; do
    number=$((number + 1))
    ip netns add "$hosts_tag-$name"
    ip -n "$hosts_tag-$name" link set lo up
    ip -n "$hosts_tag-$name" link add eth0 type veth \
      peer name "port$number" netns "$hosts_tag-net"
    ip -n "$hosts_tag-net" link set "port$number" master bridge up
    ip -n "$hosts_tag-$name" address add "10.77.0.$number/24" dev eth0
    ip -n "$hosts_tag-$name" link set eth0 up
    # A cubic route, because BBR, the default of some machines, is erratic here.
    ip -n "$hosts_tag-$name" route replace 10.77.0.0/24 dev eth0 \
      congctl cubic 2>/dev/null || true
    echo "10.77.0.$number $name" >>"$hosts_directory/hosts"
  done
}

host_address() {
  awk -v name="$1" '$2 == name { print $1 }' "$hosts_directory/hosts"
}

host_rename() {
  local hosts
  hosts=$(awk -v name="$1" -v new="$2" '$2 == new { next }
    $2 == name { $2 = new } { print }' "$hosts_directory/hosts")
  # In place: it is the file that covers /etc/hosts.
  echo "$hosts" >"$hosts_directory/hosts"
}

on_host() {
  local name=$1
  shift
  # Names: /etc/hosts is covered in a mount namespace of the command's own.
  exec ip netns exec "$hosts_tag-$name" unshare --mount \
    /bin/sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' \
    "$hosts_directory/hosts" "$@"
}

host_slow() {
  tc -n "$hosts_tag-$1" qdisc replace dev eth0 root tbf rate "$2" \
    burst 64kb latency 400ms
}

host_fast() { tc -n "$hosts_tag-$1" qdisc delete dev eth0 root; }

# Its own end stays up, as after unplugging the cable at the switch.
host_port() {
  local number=0 name
  for name in "${hosts_names[@]}"; do
    number=$((number + 1))
    if [ "$name" = "$1" ]; then echo "port$number"; fi
  done
}

host_cut() { ip -n "$hosts_tag-net" link set "$(host_port "$1")" nomaster; }

hosts_firewall_or_skip() {
  command -v iptables >/dev/null || hosts_skip "iptables is not installed"
  local try=$hosts_tag-try made=yes
  ip netns add "$try" 2>/dev/null ||
    hosts_skip "network namespaces cannot be made here"
  ip netns exec "$try" iptables -w -A INPUT -s 10.77.0.1 -j DROP 2>/dev/null ||
    made=no
  ip netns delete "$try"
  [ "$made" = yes ] || hosts_skip "iptables drops nothing here"
}

host_deafen() {
  ip netns exec "$hosts_tag-$1" iptables -w -A INPUT \
    -s "$(host_address "$2")" -j DROP
}

host_hear() {
  ip netns exec "$hosts_tag-$1" iptables -w -D INPUT \
    -s "$(host_address "$2")" -j DROP
}

host_mend() {
  ip -n "$hosts_tag-net" link set "$(host_port "$1")" master bridge
}

hosts_end() {
  local name pids
  for name in "${hosts_names[@]}"; do
    pids=$(ip netns pids "$hosts_tag-$name" 2>/dev/null || true)
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
    ip netns delete "$hosts_tag-$name" 2>/dev/null || true
  done
  ip netns delete "$hosts_tag-net" 2>/dev/null || true
  [ -z "$hosts_directory" ] || rm -rf "$hosts_directory"
}
