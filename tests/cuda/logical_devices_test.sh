#!/usr/bin/env bash
# logical_devices_test.sh TOOL BUILD: one emulated card offered as two devices, each with a part of its memory: a model over both of them and the CPU
# answers as on the CPU alone, and when the card is lost the command ends with an error. The parts leave room for one context, and what both allocate is
# held against the card's free memory before either does.
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
card "$build/bin/tessera" plan --config "$folder/config.toml" -ts 1,1 -ngl 3 >"$folder/plan" || exit 1
tr -s ' \n' ' ' <"$folder/plan" | grep -Fq "left beside that for the driver's context and code: 314.0 MiB of CUDA0.0 and CUDA0.1 together" ||
    { echo "expected one context for both parts:"; cat "$folder/plan"; exit 1; }
# Each of them fits what another process leaves, both together do not.
sed -i 's/14GiB/1GiB/' "$folder/config.toml"
"$tool" --build "$build" --gpu 8.6:2GiB --faults 0:taken@1746 --statistics "$folder/calls" -- "${run[@]}" --config "$folder/config.toml" -ts 1,1 >"$folder/found" 2>&1
[ $? -eq 3 ] || { echo "two parts that do not fit together: expected status 3:"; cat "$folder/found"; exit 1; }
grep -Eq "CUDA0.0 and CUDA0.1 \(NVIDIA GeForce RTX 3090\): the plan takes [0-9.]+ MiB, but only 46.0 MiB are free now, 2048.0 MiB when it was made: the driver's own context has taken 256.0 MiB, other processes 1746.0 MiB" "$folder/found" ||
    { echo "expected what the plan takes of both parts:"; cat "$folder/found"; exit 1; }
! grep -q "cuMemAlloc" "$folder/calls" || { echo "memory was allocated all the same"; exit 1; }
faults=(--faults 0:lost@300)
if card "${run[@]}" --config "$folder/config.toml" -ts 1,1 >"$folder/found" 2>&1; then echo "a lost card went on"; exit 1; fi
grep -q "the card is lost, as was asked for" "$folder/found" || { echo "expected a lost device, found:"; cat "$folder/found"; exit 1; }
