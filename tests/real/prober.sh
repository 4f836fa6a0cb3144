# As prober.py, for worlds without Python: with the programs of busybox, as far as they are there.
# Reads lines "tcp ADDRESS PORT", "name NAME", "resolver ADDRESS"; says "reached WHAT", "tried WHAT" or "absent WHAT".
try() {
    within 3 "$@"
}
# seconds, what, and a command that reaches it
within() {
    seconds=$1
    what=$2
    shift 2
    if ! command -v "$1" >/dev/null; then
        echo "absent $what"
    elif timeout "$seconds" "$@" </dev/null >/dev/null 2>&1; then
        echo "reached $what"
    else
        echo "tried $what"
    fi
}
while read -r kind address port; do
    case $kind in
    tcp) within 600 "tcp $address $port" nc -w 600 "$address" "$port" ;;
    name) try "name $address" nslookup "$address" ;;
    resolver) try "resolver $address" nslookup example.com "$address" ;;
    esac
done
try "ping" ping -c 1 -W 1 192.0.2.1
try "ping of the bridge" ping -c 1 -W 1 172.17.0.1
try "fetch" wget -q -T 1 -O /dev/null http://169.254.169.254/latest/meta-data/
try "link" ip link add probe0 type dummy
try "link lo" ip link set lo down
try "address" ip addr add 10.99.0.1/24 dev lo
try "route" ip route add default dev lo
try "another network" unshare -n true
try "another user and network" unshare -U -n true
try "the network of the first process" nsenter -t 1 -n true
try "a device" mknod /tmp/tun c 10 200
try "who has it" arping -c 1 -w 1 172.17.0.1
