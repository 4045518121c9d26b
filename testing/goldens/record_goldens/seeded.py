"""Models whose weights are computed from a seed: a file NAME.seeded.gguf has the keys of the model, the tensors that are no random numbers, and
of each of the others name, type, shape, centre and scale. tests/goldens/README.md says what the weights are; tests/goldens/seeded_model.cpp computes the same.
"""
import gguf
import numpy as np

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15  # of splitmix64
# The standard deviation of what units() gives: four uniform numbers of 16 bits.
SPREAD = np.sqrt(4 * (65536.0 ** 2 - 1) / 12)
PREFIX = "seeded."
F16 = gguf.GGMLQuantizationType.F16
TYPES = {int(F16): np.float16, int(gguf.GGMLQuantizationType.F32): np.float32}


def fnv1a(data):
    """The hash of that name, of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def mixed(z):
    """The output function of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def units(seed, name, count):
    """Integers of -131,070 to 131,070, about normal, of a stream that seed and name choose."""
    start = np.uint64(fnv1a(f"{seed}:{name}".encode()))
    z = mixed(start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(STEP))
    fields = [(z >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48)]
    return sum(fields).astype(np.int64) - 2 * 65535


def weights(seed, name, shape, kind, centre, scale):
    """centre + scale * units, which f64 has exactly, rounded to f32, and where kind is f16 to that."""
    values = np.float64(np.float32(centre)) + np.float64(np.float32(scale)) * units(seed, name, int(np.prod(shape)))
    return values.astype(np.float32).astype(TYPES[int(kind)]).reshape(shape)


def checksum(arrays):
    """Of all weights of a file, one after the other."""
    return fnv1a(b"".join(np.ascontiguousarray(data).tobytes() for data in arrays))


def add_description(writer, seed, tensors):
    """tensors: (name, array, centre, scale) of those that weights() computed. Shapes are written fastest first."""
    writer.add_uint32(PREFIX + "seed", seed)
    writer.add_array(PREFIX + "names", [name for name, *_ in tensors])
    writer.add_array(PREFIX + "types", [int(F16 if data.dtype == np.float16 else gguf.GGMLQuantizationType.F32) for _, data, *_ in tensors])
    writer.add_array(PREFIX + "dims", [int(n) for _, data, *_ in tensors for n in (data.shape[::-1] + (0, 0, 0))[:4]])
    writer.add_array(PREFIX + "centres", [float(centre) for _, _, centre, _ in tensors])
    writer.add_array(PREFIX + "scales", [float(scale) for *_, scale in tensors])
    writer.add_uint64(PREFIX + "checksum", checksum(data for _, data, *_ in tensors))


def read_weights(reader):
    """What a gguf.GGUFReader's file describes: an array for each name."""
    def key(name):
        return reader.fields[PREFIX + name].contents()
    dims = np.array(key("dims")).reshape(-1, 4)
    made = {name: weights(key("seed"), name, tuple(int(n) for n in shape[::-1] if n), kind, centre, scale)
            for name, kind, shape, centre, scale in zip(key("names"), key("types"), dims, key("centres"), key("scales"))}
    if checksum(made.values()) != key("checksum"):
        raise ValueError("the weights are not those that were recorded: the checksum differs")
    return made
