// Models in several files, named PREFIX-00001-of-00003.gguf and numbered inside by split.no (from 0), split.count and
// split.tensors.count.
#pragma once

#include "core/gguf/header.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::gguf {

struct SplitName {
    std::string prefix;
    uint32_t number = 1;  // from 1
    uint32_t count = 1;

    bool operator==(const SplitName&) const = default;
};

// Parses a file name; nothing if it is not that of a shard.
std::optional<SplitName> parse_split_name(std::string_view name);
std::string split_file_name(const SplitName& name);

struct SplitInfo {
    uint32_t number = 0;  // from 0, below count
    uint32_t count = 1;
    uint64_t tensors = 0;  // of all shards together
};

// The shard that a header describes; a file without split.count, or with 0 as merged ones have it, is the only shard.
// Throws Error(TSR_CORRUPT_DATA) for numbers that contradict each other.
SplitInfo split_info(const Header& header);

// Joins all shards, given in order: metadata of the first, tensors of all with TensorEntry::file set, file_bytes
// summed. Throws Error(TSR_CORRUPT_DATA), naming the shard, if the shards do not belong together.
Header join_shards(std::vector<Header> shards);

}  // namespace tessera::gguf
