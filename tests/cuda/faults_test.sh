#!/usr/bin/env bash
# faults_test.sh TOOL BUILD: what fails on a card ends the command with an error that says what and where, at whatever call it is.
set -u
tool=$1 build=$2
failed=0
# expect FAULT TEXT...
expect() {
    local fault=$1 output status
    shift
    output=$(timeout 60 "$tool" --build "$build" --gpu 8.6:24GiB --faults "$fault" -- "$build/bin/tessera" run --temp 0 -n 3 -p Count 2>&1)
    status=$?
    [ $status -eq 1 ] || [ $status -eq 3 ] || { echo "$fault: expected status 1 or 3, found $status: $output"; failed=1; }
    for text in "$@"; do [[ $output == *"$text"* ]] || { echo "$fault: expected \"$text\" in: $output"; failed=1; }; done
}
for at in 1 7 30 60 150 300; do expect "0:lost@$at" CUDA0 "the card is lost, as was asked for"; done
expect 0:memory@1 "CUDA0 cannot allocate" "CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)"
for at in 1 40 200; do expect "0:launch@$at" CUDA0 "CUDA_ERROR_LAUNCH_FAILED" "a launch fails, as was asked for"; done
exit $failed
