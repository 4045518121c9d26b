#!/usr/bin/env bash
# free_memory_test.sh TOOL BUILD: memory of a card that is gone between plan and load, to other processes or to the driver's own context, is found
# before anything is allocated, and the message tells which of them it was. The plan leaves room for the context, and says so.
set -u
tool=$1 build=$2
failed=0
# card DESCRIPTION FAULTS COMMAND...: sets output and status.
card() {
    local description=$1 faults=$2
    shift 2
    output=$(timeout 120 "$tool" --build "$build" --gpu "$description" ${faults:+--faults "$faults"} --statistics "$folder/calls" -- "$build/bin/tessera" "$@" 2>&1)
    status=$?
}
expect() {
    [ $status -eq "$1" ] || { echo "expected status $1, found $status: $output"; failed=1; }
    shift
    for text in "$@"; do
        if [ "${text#!}" != "$text" ]; then
            [[ ! $output =~ ${text#!} ]] || { echo "expected no \"${text#!}\" in: $output"; failed=1; }
        else
            [[ $output =~ $text ]] || { echo "expected \"$text\" in: $output"; failed=1; }
        fi
    done
}
nothing_allocated() {
    ! grep -q "cuMemAlloc" "$folder/calls" || { echo "memory was allocated all the same"; failed=1; }
}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
run=(run --temp 0 -n 1 -p Count)

card 8.6:2GiB 0:taken@1780 "${run[@]}"
expect 3 "CUDA0 \(NVIDIA GeForce RTX 3090\): the plan takes [0-9.]+ MiB, but only 12.0 MiB are free now, 2048.0 MiB when it was made" \
    "the driver's own context has taken 256.0 MiB, other processes 1780.0 MiB; end what else uses the card or start again to plan with what is left"
nothing_allocated

card 8.6:2GiB:context=2040 "" "${run[@]}"
expect 3 "but only 8.0 MiB are free now, 2048.0 MiB when it was made: the driver's own context has taken 2040.0 MiB; start again with -fitt [0-9]+, which leaves so many MiB more for it" "!, other processes"
nothing_allocated

# The advice is right.
card 8.6:2GiB:context=2040 "" "${run[@]}" -fitt "$(sed -n 's/.*start again with -fitt \([0-9]*\),.*/\1/p' <<<"$output")"
expect 0

# Less than is free, more than was left for it.
card 8.6:24GiB:context=900 "" "${run[@]}"
expect 0 "CUDA0: the driver's context and code, or other processes since, take 90[0-9.]+ MiB, where 314.0 MiB were left for it"
card 8.6:24GiB "" "${run[@]}"
expect 0 "!were left for it"

# On a card of 8 GB a context is more than the margin of what is free.
card 8.6:8GiB "" plan
expect 0 "left beside that for the driver's context and code: 314.0 MiB of CUDA0" "CUDA0 .* 7.57 "
exit $failed
