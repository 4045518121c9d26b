#!/usr/bin/env bash
# made_after_loading_test.sh TOOL BUILD: nothing is allocated, recorded or loaded once a model is there. By the emulated driver's statistics, more work
# of the same plan has as many calls that make something as less work: of prompts, of mixed steps on two cards and the CPU, of experts that are
# streamed.
set -u
tool=$1 build=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

makes="cuMemAlloc_v2 cuMemHostAlloc cuMemHostRegister_v2 cuStreamCreate cuEventCreate cuModuleLoadData cuModuleGetFunction cuFuncSetAttribute
    cuStreamBeginCapture_v2 cuGraphInstantiateWithFlags cuGraphUpload"
# work FILE CARDS ARGUMENT...: runs the bundled model with a fixed context; calls are then in $folder/FILE.
work() {
    local file=$1 cards=$2 card options=()
    shift 2
    for card in $cards; do options+=(--gpu "$card"); done
    "$tool" --build "$build" "${options[@]}" --statistics "$folder/$file" -- "$build/bin/tessera" run --temp 0 -c 512 -ub 16 --ignore-eos "$@" \
        >"$folder/output" 2>&1 || { cat "$folder/output"; exit 1; }
}
# nothing_made FUNCTION: $folder/more has more calls of FUNCTION than $folder/less, but no more of those that make something.
nothing_made() {
    awk -F'\t' -v makes="$makes" -v works="$1" -v title="$title" '
        { calls[FILENAME, $2] += $3 }
        END {
            count = split(makes, names, " ")
            for (i = 1; i <= count; ++i) {
                less = calls[ARGV[1], names[i]] + 0; more = calls[ARGV[2], names[i]] + 0
                if (less != more) { print title ": " more - less " calls of " names[i] " after loading"; bad = 1 }
            }
            if (calls[ARGV[1], "cuMemAlloc_v2"] == 0) { print title ": no allocation was counted"; bad = 1 }
            if (calls[ARGV[2], works] <= calls[ARGV[1], works]) { print title ": no more calls of " works " than before"; bad = 1 }
            exit bad
        }' "$folder/less" "$folder/more" || failed=1
}
long="one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"

title="prompts"
work less 8.6:24GiB -ngl 99 --raw -n 1 -p one
work more 8.6:24GiB -ngl 99 --raw -n 1 -p "$long"
nothing_made cuLaunchKernel

# Sequences that begin while others generate.
title="mixed steps on two cards and the CPU"
printf 'one\ntwo\nthree\n' >"$folder/short"
printf '%s\n' "one" "$long" "two three four" "$long" "five" >"$folder/prompts"
work less "8.6:24GiB 6.1:24GiB" -ts 1,1 -ngl 2 --parallel 3 -f "$folder/short" -n 1
work more "8.6:24GiB 6.1:24GiB" -ts 1,1 -ngl 2 --parallel 3 -f "$folder/prompts" -n 3
nothing_made cuLaunchKernel

title="experts that are streamed"
work less 8.6:24GiB -ngl 99 --cpu-moe --op-offload-from 8 --raw -n 1 -p one
work more 8.6:24GiB -ngl 99 --cpu-moe --op-offload-from 8 --raw -n 1 -p "$long"
nothing_made cuMemcpyHtoDAsync_v2
exit $failed
