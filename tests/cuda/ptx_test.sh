#!/usr/bin/env bash
# ptx_test.sh FOLDER: each module of kernels that a build has embedded into its plugins holds PTX, too.
set -u
shopt -s nullglob
modules=("$1"/*/cuda/*/*.cpp)
[ ${#modules[@]} -gt 0 ] || { echo "no module of kernels under $1"; exit 1; }
without=$(grep -L "tessera_image_.*_ptx" "${modules[@]}")
[ -z "$without" ] || { printf 'without PTX:\n%s\n' "$without"; exit 1; }
echo "${#modules[@]} modules"
