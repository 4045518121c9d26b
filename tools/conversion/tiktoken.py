"""The ranks of a vocabulary of the library tiktoken (GLM-4, Kimi-K2), as byte-level BPE.

A line has a token's bytes in base64 and its rank, which is its id (https://github.com/openai/tiktoken: load_tiktoken_bpe).
"""
import base64
import binascii

from conversion.errors import Unsupported


def is_of_tiktoken(path):
    with open(path, "rb") as file:
        parts = file.readline(4096).split()
    try:
        return len(parts) == 2 and bool(base64.b64decode(parts[0], validate=True)) and int(parts[1]) >= 0
    except (binascii.Error, ValueError):
        return False


def read_ranks(path):
    """{bytes: rank}"""
    ranks = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (binascii.Error, ValueError) as error:
            raise Unsupported(f"{path}: line {number} is no token in base64 and its rank") from error
    if missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        raise Unsupported(f"{path}: the byte {missing[0]} is no token")
    return ranks


def merges_of(ranks):
    """The two tokens that each is merged of, in the order of their ranks: those that are left when all pairs of lower rank are merged."""
    for token, rank in sorted(ranks.items(), key=lambda entry: entry[1]):
        parts = [bytes([byte]) for byte in token]
        while len(parts) > 2:
            found = [(ranks.get(first + second, rank), i) for i, (first, second) in enumerate(zip(parts, parts[1:]))]
            lowest, i = min(found)
            if lowest >= rank:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        if len(parts) == 2:
            yield tuple(parts)
