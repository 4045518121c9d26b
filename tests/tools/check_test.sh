#!/usr/bin/env bash
# check_test.sh CHECK: tools/check fails if a step of it fails, and leaves out only what it is told to. In a folder where each tool only
# writes down its first two arguments, and fails if they begin with $failing.
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tools" "$folder/bin"
cp "$1" "$folder/tools/check"
for tool in tools/setup tools/build tools/failed_tests bin/ctest; do
    printf '#!/usr/bin/env bash\ncall="${0##*/}${1:+ $1}${2:+ $2}"\necho "$call" >>"%s/calls"\n[[ -z ${failing:-} || $call != $failing* ]]\n' "$folder" >"$folder/$tool"
    chmod 755 "$folder/$tool"
done
export PATH="$folder/bin:$PATH"
failed=0

# expect STATUS FAILING ARGUMENTS TEXT CALL...: with that status, having said that, and called these and nothing else.
expect() {
    local status=$1 arguments=$3 text=$4 found output
    export failing=$2
    shift 4
    : >"$folder/calls"
    output=$("$folder/tools/check" $arguments 2>&1)
    found=$?
    [ $found -eq "$status" ] || { echo "check $arguments, failing '$failing': expected status $status, found $found: $output"; failed=1; }
    [[ $output == *"$text"* ]] || { echo "check $arguments, failing '$failing': expected \"$text\" in: $output"; failed=1; }
    [ "$(printf '%s\n' "$@")" = "$(cat "$folder/calls")" ] ||
        { echo "check $arguments, failing '$failing': expected" "${@/%/;}" "found"; cat "$folder/calls"; failed=1; }
}
expect 0 "" "" "minutes here from nothing" "setup --tests" "setup --cuda" "build release -DTSR_CUDA=ON" "ctest --preset release"
expect 0 "" "" "This took 0 minutes here the last time" "setup --tests" "setup --cuda" "build release -DTSR_CUDA=ON" "ctest --preset release"
expect 0 "" "--full" "All passed" "setup --tests" "setup --cuda" "build release -DTSR_CUDA=ON" "ctest --preset full" "build asan" \
    "ctest --preset asan"
expect 1 "setup --cuda" "" "--without-cuda" "setup --tests" "setup --cuda"
expect 0 "setup --cuda" "--without-cuda" "Neither built nor tested: the CUDA plugins" "setup --tests" \
    "build release -DTSR_CUDA=OFF" "ctest --preset release"
expect 1 "ctest --preset release" "" "Stopped at: testing" "setup --tests" "setup --cuda" "build release -DTSR_CUDA=ON" \
    "ctest --preset release" "failed_tests build/release"
expect 2 "" "--cuda" "unknown option --cuda"
exit $failed
