#!/usr/bin/env bash
# run_on_cards_test.sh TOOL BUILD CARDS ARGUMENT...: the bundled model answers on emulated cards ("8.6:24GiB 6.1:24GiB") as it does on
# the CPU alone, and each card takes part.
set -u
tool=$1 build=$2 cards=$3
shift 3
options=(--build "$build")
for card in $cards; do options+=(--gpu "$card"); done
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

run=("$build/bin/tessera" run --temp 0 --no-perf "$@")
"${run[@]}" >"$folder/expected" 2>"$folder/expected.messages" || { echo "without cards:"; cat "$folder/expected.messages"; exit 1; }
"$tool" "${options[@]}" -- "${run[@]}" >"$folder/found" 2>"$folder/messages" || { echo "on $cards:"; cat "$folder/messages"; exit 1; }
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
cat "$folder/found"
