"""Each CUDA plugin is within its bound of size: plugin_sizes_test.py BUILD [--most BYTES].

Of the plugin as it was built, and of one for all architectures: those that are missing are counted as large as the largest that is there.
"""

import argparse
import collections
import pathlib
import re
import sys

# Architectures of a full build (cmake/TesseraCuda.cmake); PTX of the newest virtual one comes on top.
FULL = {"cuda_legacy": 3, "cuda_ampere": 4}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--most", type=float, default=60e6)
    options = parser.parse_args()
    plugins, wrong = 0, 0
    for name, full in FULL.items():
        library = options.build / "lib/tessera/plugins" / f"tessera_{name}.so"
        if not library.exists():
            continue
        plugins += 1
        images = collections.Counter()  # bytes by architecture, as they are embedded
        for path in options.build.glob(f"plugins/{name}/cuda/*/*.cubin.z"):
            images[re.search(r"\.(\d+(?:@\d+)?)\.[0-9a-f]+\.cubin\.z$", path.name).group(1)] += path.stat().st_size
        size = library.stat().st_size
        if not images or sum(images.values()) > size:
            print(f"{library} has {size} bytes, its images {sum(images.values())}")
            return 1
        whole = size + max(0, full - len(images)) * max(images.values())
        print(f"{library.name}: {size / 1e6:.1f} MB for {' '.join(sorted(images))}; {whole / 1e6:.1f} MB for {max(full, len(images))} architectures")
        if max(size, whole) > options.most:
            print(f"expected at most {options.most / 1e6:.1f} MB")
            wrong += 1
    if not plugins:
        print(f"there is no CUDA plugin in {options.build}")
    return 1 if wrong or not plugins else 0


if __name__ == "__main__":
    sys.exit(main())
