#!/usr/bin/env bash
# faults_test.sh TOOL BUILD: what fails on a card ends the command with an error that says what and where, at whatever call it is: node, op and layer
# of the work that was under way, the bytes of copies, the device, the driver's own words, and what to do.
set -u
tool=$1 build=$2
failed=0
cards=(--gpu 8.6:24GiB) arguments=()
# expect FAULT REGEX...
expect() {
    local fault=$1 status
    shift
    output=$(timeout 60 "$tool" --build "$build" "${cards[@]}" --faults "$fault" -- "$build/bin/tessera" run --temp 0 -n 3 -p Count "${arguments[@]}" 2>&1)
    status=$?
    [ $status -eq 1 ] || [ $status -eq 3 ] || { echo "$fault: expected status 1 or 3, found $status: $output"; failed=1; }
    for text in "$@"; do [[ $output =~ $text ]] || { echo "$fault: expected \"$text\" in: $output"; failed=1; }; done
    printf '%s: %s\n' "$fault" "$(grep "^tessera: " <<<"$output")"
}
node='[a-z0-9._]+ \([a-z_]+(, layer [0-9]+)?\)'
again='CUDA[01] is lost: start again without it, or after a reset'
for at in 1 7 30 60 150 300; do expect "0:lost@$at" CUDA0 "the card is lost, as was asked for"; done
expect 0:memory@1 "CUDA0 cannot allocate" "CUDA_ERROR_OUT_OF_MEMORY \(2, out of memory\)"
# A launch that fails later, while loading; at once; and in a recording.
for at in 1 40 200; do expect "0:launch@$at" CUDA0 "CUDA_ERROR_LAUNCH_FAILED" "a launch fails, as was asked for"; done
expect 0:launch@40 "$node to $node.*: CUDA0 cannot" "$again"
expect 0:cuLaunchKernel@40 "$node on CUDA0: .*cuLaunchKernel returned" "$again"
expect 0:cuModuleLoadData@3 "$node on CUDA0: .*prepare of kernel .*cuModuleLoadData returned" "$again"
expect 0:cuMemcpyHtoDAsync_v2@45 "copy of (the inputs of a step|the result of $node) from CPU to CUDA0, [0-9]+ bytes: CUDA0 cannot copy data from the host: .*cuMemcpyHtoDAsync" "$again"
expect 0:cuMemcpyDtoHAsync_v2@4 "copy of the result of $node from CUDA0 to CPU, [0-9]+ bytes: CUDA0 cannot copy data to the host" "$again"
expect 0:cuGraphLaunch@2 "$node to $node: CUDA0 cannot replay a recording: .*cuGraphLaunch returned" "$again"
expect 0:cuEventSynchronize@56 "($node to $node|copy of .*, at most [0-9]+ bytes).*: CUDA0 cannot finish its work" "$again"
# One of two cards in the middle of an answer: the other one and the CPU are waited for, and have no part in the error.
cards=(--gpu 6.1:24GiB --gpu 8.6:24GiB) arguments=(-ts 1,1 -ngl 2)
for at in 1:cuGraphLaunch@2 1:launch@100; do
    expect $at "$node.*: CUDA${at%%:*} cannot" "$again"
    [[ $output != *"CUDA$((1 - ${at%%:*})) cannot"* && $output != *"card $((1 - ${at%%:*})) ("* ]] || { echo "$at: the other card failed, too: $output"; failed=1; }
done
exit $failed
