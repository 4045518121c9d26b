#!/usr/bin/env bash
# logical_pair_test.sh TOOL BUILD: both CUDA plugins at once on one emulated 9.0, as two logical devices: cuda_legacy by code that was made from compute_61
# (90@61). The bundled model over both answers as on the CPU alone.
set -u
tool=$1 build=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
# The manifest of cuda_legacy ends at 7.5, since on newer cards its code is for trials only.
cp -r "$build/lib/tessera/plugins" "$folder/plugins" || exit 1
sed -i 's/^maximum_compute_capability = .*/maximum_compute_capability = "9.0"/' "$folder/plugins/tessera_cuda_legacy.toml"
cat >"$folder/config.toml" <<'END'
[plugins]
default_folder = false
folders = ["plugins"]
[[devices.CUDA0.logical]]
plugin = "cuda_ampere"
[[devices.CUDA0.logical]]
plugin = "cuda_legacy"
END
run=("$build/bin/tessera" run --temp 0 --no-perf -p "Count from 1 to 10 in French." -n 20)
"${run[@]}" >"$folder/expected" 2>&1 || { cat "$folder/expected"; exit 1; }
"$tool" --build "$build" --gpu 9.0:24GiB --counters "$folder/counters" -- "${run[@]}" --config "$folder/config.toml" -ts 1,1 >"$folder/found" \
    2>"$folder/messages" || { cat "$folder/messages"; exit 1; }
[ -s "$folder/found" ] && grep -qF "$(cat "$folder/found")" "$folder/expected" ||
    { echo "expected $(cat "$folder/expected"), found $(cat "$folder/found")"; cat "$folder/messages"; exit 1; }
for part in 0 1; do
    grep -Eq "^CUDA0.$part: uses .*weights [0-9.]+ [KMG]iB" "$folder/messages" || { echo "CUDA0.$part does nothing:"; cat "$folder/messages"; exit 1; }
done
# Columns: kernel, launches.
for plugin in cuda_ampere cuda_legacy; do
    launched=$(awk -F'\t' -v plugin="$plugin" 'index($1, plugin "__") == 1 { sum += $2 } END { print sum + 0 }' "$folder/counters")
    [ "$launched" -gt 0 ] || { echo "no kernel of $plugin was launched"; cat "$folder/counters"; exit 1; }
    echo "$plugin: $launched launches"
done
cat "$folder/found"
