#!/usr/bin/env bash
# run_on_cards_test.sh TOOL BUILD CARDS CPU ARGUMENT...: the bundled model answers on emulated cards ("8.6:24GiB 6.1:24GiB") as it does on
# the CPU alone, and each card takes part. EMULATED_OPTIONS: further options of TOOL. CPU: "idle", it has no node and no weight; "works", it has both in the layers; "any".
set -u
tool=$1 build=$2 cards=$3 cpu=$4
shift 4
options=(--build "$build" ${EMULATED_OPTIONS:-})
for card in $cards; do options+=(--gpu "$card"); done
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

run=("$build/bin/tessera" run --temp 0 --no-perf)
# Rules may name cards.
without_rules=()
for ((i = 1; i <= $#; ++i)); do
    if [ "${!i}" = -ot ]; then ((++i)); else without_rules+=("${!i}"); fi
done
"${run[@]}" "${without_rules[@]}" >"$folder/expected" 2>"$folder/expected.messages" || { echo "without cards:"; cat "$folder/expected.messages"; exit 1; }
"$tool" "${options[@]}" -- "${run[@]}" "$@" >"$folder/found" 2>"$folder/messages" || { echo "on $cards:"; cat "$folder/messages"; exit 1; }
[ -s "$folder/expected" ] || { echo "the model says nothing"; exit 1; }
if ! cmp -s "$folder/expected" "$folder/found"; then
    printf 'without cards: %s\non %s: %s\n' "$(cat "$folder/expected")" "$cards" "$(cat "$folder/found")"
    cat "$folder/messages"
    exit 1
fi
number=0
for card in $cards; do
    grep -Eq "CUDA$number: uses .*weights [0-9.]+ [KMG]iB" "$folder/messages" || { echo "CUDA$number does nothing:"; cat "$folder/messages"; exit 1; }
    number=$((number + 1))
done
if [ "$cpu" != any ]; then
    "$tool" "${options[@]}" -- "$build/bin/tessera" plan --json --temp 0 "$@" >"$folder/plan" 2>"$folder/messages" || { cat "$folder/messages"; exit 1; }
    python3 - "$cpu" "$folder/plan" <<'END' || exit 1
import json, sys
cpu, plan = sys.argv[1], json.load(open(sys.argv[2]))
nodes = [(n["layer"], n["name"]) for n in plan["nodes"] + plan["init_nodes"] if n["device"] == "CPU"]
weights = [(s["layer"], s["name"]) for s in plan["storages"] if s["device"] == "CPU"]
in_layers = all(any(0 <= layer < plan["model"]["layers"] for layer, _ in them) for them in (nodes, weights))
if (nodes or weights) if cpu == "idle" else not in_layers:
    sys.exit(f"CPU: expected '{cpu}', found the nodes {nodes} and the weights {weights}")
END
fi
cat "$folder/found"
