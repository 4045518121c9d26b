#!/usr/bin/env bash
# with_emulated_gpus_test.sh TOOL BUILD: the tool shows its cards to a program, and says what is missing.
set -u
tool=$1 build=$2
failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# expect STATUS TEXT... -- ARGUMENT...: the tool ends with the status, and prints each text.
expect() {
    local status=$1 texts=()
    shift
    while [ "$1" != -- ]; do texts+=("$1"); shift; done
    shift
    local output found
    output=$("$tool" "$@" 2>&1)
    found=$?
    [ $found -eq "$status" ] || { echo "with_emulated_gpus $*: expected status $status, found $found: $output"; failed=1; }
    for text in "${texts[@]}"; do
        [[ $output == *"$text"* ]] || { echo "with_emulated_gpus $*: expected \"$text\" in: $output"; failed=1; }
    done
}

expect 0 "CUDA0: NVIDIA GeForce RTX 3090, compute capability 8.6, 24.0 GiB" "CUDA1: Tesla P40, compute capability 6.1, 11.0 GiB" \
    -- --build "$build" --gpu 8.6:24GiB --gpu 6.1:11GiB -- "$build/bin/tessera" devices
expect 0 "CUDA0: A card, compute capability 9.0" -- --build "$build" --gpu "9.0:80GiB:name=A card" -- "$build/bin/tessera" devices
expect 7 -- --build "$build" --gpu 8.6:24GiB -- bash -c 'exit 7'
expect 0 "[random][3]" -- --build "$build" --gpu 8.6:24GiB --policy random --seed 3 -- \
    bash -c 'echo "[$TESSERA_EMULATED_POLICY][$TESSERA_EMULATED_SEED]"'
expect 0 "expected CAPABILITY:MEMORY" -- --build "$build" --gpu 5.2:4GiB -- "$build/bin/tessera" devices
expect 2 "no card: give --gpu" -- --build "$build" -- true
expect 2 "no command" -- --build "$build" --gpu 8.6:24GiB
expect 2 "no emulated driver in $folder" "TSR_TESTS=ON" "tessera_emulated_cuda" -- --build "$folder" --gpu 8.6:24GiB -- true
expect 2 "expected an option or --, found --gpus" -- --gpus 8.6:24GiB -- true
expect 0 "--gpu CAPABILITY:MEMORY" -- --help
exit $failed
