#!/usr/bin/env bash
# pipeline_test.sh TOOL BUILD: chunks of a prompt on two cards, by the emulated driver's statistics. The host submits three chunks without waiting for
# any: it waits as often as for a prompt of one chunk. Streams do nothing before somebody waits (policy "late"), so that a second chunk is always
# submitted before the first has ended. The answer is that of the CPU.
set -u
tool=$1 build=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
chunk=16
long="The key of box 1 is 17. The key of box 2 is 24. The key of box 3 is 31. The key of box"
run=("$build/bin/tessera" run --temp 0 --raw --no-perf -ub $chunk -c 256)

# on_cards NAME TOKENS PROMPT: the answer in $folder/NAME, calls in $folder/NAME.calls
on_cards() {
    "$tool" --build "$build" --gpu 8.6:24GiB --gpu 6.1:24GiB --policy late --statistics "$folder/$1.calls" -- "${run[@]}" -ts 1,1 -n "$2" -p "$3" \
        >"$folder/$1" 2>"$folder/messages" || { cat "$folder/messages"; exit 1; }
}
# calls NAME CARD FUNCTION...: together
calls() {
    awk -F'\t' -v card="$2" -v names=" ${*:3} " '(card == "all" || $1 == card) && index(names, " " $2 " ") { calls += $3 } END { print calls + 0 }' "$folder/$1.calls"
}
waits() { calls "$1" all cuEventSynchronize cuStreamSynchronize cuEventQuery cuCtxSynchronize; }
failed=0
expect() { [ "$2" = "$3" ] || { echo "$1: expected $2, found $3"; failed=1; }; }

on_cards one 1 "The key of box"
on_cards three 1 "$long"
for card in 0 1; do
    for name in one three; do [ "$(calls $name $card cuMemcpyHtoDAsync_v2)" -gt 0 ] || { echo "card $card does nothing"; failed=1; }; done
done
expect "chunks more than one" 2 $(($(calls three 0 cuMemcpyHtoDAsync_v2) - $(calls one 0 cuMemcpyHtoDAsync_v2)))
expect "waits of the host for three chunks, as for one" "$(waits one)" "$(waits three)"

"${run[@]}" -n 3 -p "$long" >"$folder/expected" 2>"$folder/messages" || { cat "$folder/messages"; exit 1; }
on_cards found 3 "$long"
[ -s "$folder/expected" ] && cmp -s "$folder/expected" "$folder/found" ||
    { printf 'on the CPU: %s\non cards: %s\n' "$(cat "$folder/expected")" "$(cat "$folder/found")"; failed=1; }
exit $failed
