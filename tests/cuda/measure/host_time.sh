#!/usr/bin/env bash
# host_time.sh TOOL BUILD: prints the host's own time of a transition between a card and the CPU, with experts on the CPU: processor time of the thread
# between calls of the driver, which do not count. Left out is what follows a wait, up to the next call: the nodes of the CPU (or the choice of the
# token), and with them the executor's way from the wait to the first node, from node to node, and from the last one to the next call.
set -u
tool=$1 build=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# One thread, so that the team's work is not mistaken for waiting; streams go on by themselves.
run() {
    "$tool" --build "$build" --gpu 8.6:24GiB --policy eager --statistics "$folder/$1" -- "$build/bin/tessera" run -p Count --temp 0 --raw -ngl 99 \
        --cpu-moe -t 1 -n "$1" --ignore-eos >"$folder/output" 2>&1 || { cat "$folder/output"; exit 1; }
}
layers=$("$tool" --build "$build" --gpu 8.6:24GiB -- "$build/bin/tessera" plan --json --cpu-moe -ngl 99 2>/dev/null |
    grep -o '"name": *"blk\.[0-9]*\.ffn_gate_exps' | sort -u | wc -l)
[ "$layers" -gt 0 ] || { echo "the plan tells no layer of experts"; exit 1; }
# What else runs on the machine leaves its traces in caches: the best of a few counts.
for attempt in 1 2 3; do
    run 5
    run 25
    # Columns: card, function, calls, bytes, seconds in it, seconds after it, their median, which what is done while loading does not change.
    found=$(awk -F'\t' -v few="$folder/5" -v transitions=$((20 * 2 * layers)) '
        $2 == "cuGraphLaunch" { launches += FILENAME == few ? -$3 : $3 }
        $2 !~ /Synchronize$/ && FILENAME == few { calls[$1, $2] = $3 }
        $2 !~ /Synchronize$/ && FILENAME != few { seconds += ($3 - calls[$1, $2]) * $7 }
        END { if (launches < transitions) print "no"; else print 1e6 * seconds / transitions }' "$folder/5" "$folder/25")
    [ "$found" != no ] || { echo "fewer graphs were launched than there are transitions"; cat "$folder/25"; exit 1; }
    echo "$found us a transition"
done
