#!/usr/bin/env bash
# logical_devices_test.sh TOOL BUILD: one emulated card offered as two devices, each with a part of its memory: a model over both of them and the CPU
# answers as on the CPU alone, and when the card is lost the command ends with an error.
set -u
tool=$1 build=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
printf '%s\n' '[[devices.CUDA0.logical]]' 'plugin = "cuda_ampere"' 'memory = "14GiB"' '[[devices.CUDA0.logical]]' >"$folder/config.toml"
card() { "$tool" --build "$build" --gpu 8.6:24GiB "${faults[@]}" -- "$@"; }
run=("$build/bin/tessera" run --temp 0 --no-perf -p Count -n 2)
faults=()
"${run[@]}" >"$folder/expected" 2>&1 || { cat "$folder/expected"; exit 1; }
card "${run[@]}" --config "$folder/config.toml" -ts 1,1 -ngl 3 >"$folder/found" 2>"$folder/messages" || { cat "$folder/messages"; exit 1; }
grep -qF "$(cat "$folder/found")" "$folder/expected" && [ -s "$folder/found" ] ||
    { echo "expected $(cat "$folder/expected"), found $(cat "$folder/found")"; exit 1; }
for part in CUDA0.0 CUDA0.1; do
    grep -Eq "^$part: uses .*weights [0-9.]+ [KMG]iB" "$folder/messages" || { echo "$part does nothing:"; cat "$folder/messages"; exit 1; }
done
grep -Eq "^CUDA0.0: uses .* of 13.[0-9]+ GiB" "$folder/messages" || { echo "CUDA0.0: expected 14 GiB less a margin:"; cat "$folder/messages"; exit 1; }
faults=(--faults 0:lost@300)
if card "${run[@]}" --config "$folder/config.toml" -ts 1,1 >"$folder/found" 2>&1; then echo "a lost card went on"; exit 1; fi
grep -q "the card is lost, as was asked for" "$folder/found" || { echo "expected a lost device, found:"; cat "$folder/found"; exit 1; }
