#!/usr/bin/env bash
# counts_test.sh TOOL BUILD: what a generated token costs in calls of the driver, by the emulated driver's statistics: on one card one graph and a
# copy each way; with experts on the CPU one graph for each transition between card and CPU. Kernels are launched by graphs alone.
# And that prompts group rows by expert without asking the host, and that weights are made on the card that has them.
set -u
tool=$1 build=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

# Runs the bundled model for $1 tokens with the other arguments; calls are then in $folder/$1.
run() {
    local tokens=$1
    shift
    "$tool" --build "$build" --gpu 8.6:24GiB --statistics "$folder/$tokens" -- "$build/bin/tessera" run -p Count --temp 0 --raw -ngl 99 -n "$tokens" "$@" \
        >"$folder/output" 2>&1 || { cat "$folder/output"; exit 1; }
}
# Calls of function $1 that each token takes: of runs of 2 and 5 tokens.
per_token() {
    awk -F'\t' -v name="$1" '$2 == name { calls[FILENAME] += $3 } END { print (calls[ARGV[2]] - calls[ARGV[1]]) / 3 }' "$folder/2" "$folder/5"
}
# expect NUMBER FUNCTION: so many calls a token.
expect() {
    local found
    found=$(per_token "$2")
    [ "$found" = "$1" ] || { echo "$title: expected $1 of $2 a token, found $found"; failed=1; }
}

title="on one card"
for n in 2 5; do run $n; done
expect 1 cuGraphLaunch
expect 0 cuLaunchKernel
expect 1 cuMemcpyHtoDAsync_v2
expect 1 cuMemcpyDtoHAsync_v2
expect 0 cuMemAlloc_v2

# The embedding of the CPU is a second copy to the card.
title="with the embedding on the CPU"
for n in 2 5; do run $n -ot token_embd=CPU; done
expect 1 cuGraphLaunch
expect 2 cuMemcpyHtoDAsync_v2
expect 1 cuMemcpyDtoHAsync_v2

# Each layer of experts is two transitions: to the CPU (its rows, experts and their weights) and back.
title="with experts on the CPU"
layers=$("$tool" --build "$build" --gpu 8.6:24GiB -- "$build/bin/tessera" plan --json --cpu-moe -ngl 99 2>/dev/null |
    grep -o '"name": *"blk\.[0-9]*\.ffn_gate_exps' | sort -u | wc -l)
for n in 2 5; do run $n --cpu-moe; done
expect $((2 * layers + 1)) cuGraphLaunch
expect 0 cuLaunchKernel
expect $((2 + layers)) cuMemcpyHtoDAsync_v2
expect $((1 + 3 * layers)) cuMemcpyDtoHAsync_v2
expect $((3 * layers)) cuEventSynchronize
for name in cuMemAlloc_v2 cuMemAllocHost_v2 cuMemHostRegister_v2 cuEventCreate cuEventQuery cuStreamQuery cuStreamSynchronize; do expect 0 $name; done
# Of all functions, so that none is called in a loop: a transition takes 19.
found=$(awk -F'\t' 'FNR > 1 && $2 !~ /^node/ { calls[FILENAME] += $3 } END { print (calls[ARGV[2]] - calls[ARGV[1]]) / 3 }' "$folder/2" "$folder/5")
awk -v found="$found" -v most=$((20 * 2 * layers)) 'BEGIN { exit !(found > 0 && found <= most) }' ||
    { echo "$title: expected at most 20 calls of the driver a transition, $((20 * 2 * layers)) a token, found $found"; failed=1; }

# Rows of a prompt find their experts on the card: of each step only logits come back.
title="with a prompt of more than 128 tokens"
prompt=$(for i in 1 2 3 4 5 6 7 8 9 10; do printf 'The key of drawer %d is %d. ' $i $((i * 7)); done)
rm -f "$folder/1"
"$tool" --build "$build" --gpu 8.6:24GiB --statistics "$folder/1" --counters "$folder/counters" -- "$build/bin/tessera" run -p "$prompt" --temp 0 --raw \
    -ngl 99 -n 1 -ot token_embd=CUDA0 >"$folder/output" 2>&1 || { cat "$folder/output"; exit 1; }
launches() { awk -F'\t' -v kernel="$1" '$1 ~ kernel "$" { sum += $2 } END { print sum + 0 }' "$folder/counters"; }
copies() { awk -F'\t' -v column="$1" '$2 ~ /^cuMemcpyDtoH/ { sum += $column } END { print sum + 0 }' "$folder/1"; }
rows=$(sed -n 's/^prompt: \([0-9]*\) tokens.*/\1/p' "$folder/output")
[ "${rows:-0}" -gt 128 ] || { echo "$title: it has ${rows:-no}"; failed=1; }
[ "$(launches map_experts)" -gt 0 ] || { echo "$title: no rows are grouped by expert"; failed=1; }
vocabulary=$("$build/bin/tessera" plan --json 2>/dev/null | grep -o '"vocabulary": *[0-9]*' | grep -o '[0-9]*$')
steps=$(($(launches moe_route) / layers))
[ "$steps" -gt 0 ] && [ "$(copies 3)" = "$steps" ] && [ "$(copies 4)" = $((steps * vocabulary * 4)) ] ||
    { echo "$title: in $steps steps expected as many copies of $vocabulary logits, found $(copies 3) of $(copies 4) bytes"; failed=1; }

# The variant multiplies with a part of attn_kv_b that is transposed once, on the card, where both are.
title="with weights that are made while loading"
"$tool" --build "$build" --gpu 8.6:24GiB --counters "$folder/counters" -- "$build/bin/tessera" run -p Count --temp 0 --raw -ngl 99 -n 1 -mla 1 \
    >"$folder/output" 2>&1 || { cat "$folder/output"; exit 1; }
found=$(awk -F'\t' '$1 ~ /decode.convert$/ { print $2 }' "$folder/counters")
planned=$("$tool" --build "$build" --gpu 8.6:24GiB -- "$build/bin/tessera" plan -ngl 99 -mla 1 2>/dev/null |
    sed -n 's/^\([0-9]*\) weights .* made from others while loading, on CUDA0$/\1/p')
[ "${found:-0}" -gt 0 ] && [ "$found" = "$planned" ] ||
    { echo "$title: planned are ${planned:-none} on the card, launched were ${found:-none}"; failed=1; }
[ "$layers" -gt 0 ] || { echo "the plan tells no layer of experts"; failed=1; }
exit $failed
