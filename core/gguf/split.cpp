#include "core/gguf/split.hpp"

#include "core/base/checked.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace tessera::gguf {
namespace {

constexpr size_t kDigits = 5;
constexpr std::string_view kOf = "-of-";
constexpr std::string_view kExtension = ".gguf";

std::optional<uint32_t> parse_digits(std::string_view text) {
    uint32_t number = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        number = number * 10 + static_cast<uint32_t>(c - '0');
    }
    return number;
}

}  // namespace

std::optional<SplitName> parse_split_name(std::string_view name) {
    const size_t tail = 1 + kDigits + kOf.size() + kDigits + kExtension.size();
    if (name.size() < tail || !name.ends_with(kExtension)) return std::nullopt;
    const std::string_view prefix = name.substr(0, name.size() - tail);
    const std::string_view rest = name.substr(prefix.size());
    if (rest[0] != '-' || rest.substr(1 + kDigits, kOf.size()) != kOf) return std::nullopt;
    const auto number = parse_digits(rest.substr(1, kDigits));
    const auto count = parse_digits(rest.substr(1 + kDigits + kOf.size(), kDigits));
    if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
    return SplitName{std::string(prefix), *number, *count};
}

std::string split_file_name(const SplitName& name) {
    return fmt::format("{}-{:05d}-of-{:05d}.gguf", name.prefix, name.number, name.count);
}

SplitInfo split_info(const Header& header) {
    const Metadata& metadata = header.metadata;
    const auto count = metadata.find_u32("split.count");
    // Tools that merge shards leave the keys behind and set the count to 0 for "no longer split".
    if (!count || *count == 0) return {0, 1, header.tensors.size()};
    const SplitInfo info{metadata.get_u32("split.no"), *count, metadata.get_u64("split.tensors.count")};
    if (info.number >= info.count) {
        fail(TSR_CORRUPT_DATA,
             "{}: keys 'split.no' and 'split.count': expected a number below the count, found {} and {}",
             metadata.source(), info.number, info.count);
    }
    return info;
}

Header join_shards(std::vector<Header> shards) {
    if (shards.empty()) fail(TSR_INVALID_ARGUMENT, "a model of no files");
    const SplitInfo first = split_info(shards[0]);
    uint64_t tensors = 0;
    for (size_t i = 0; i < shards.size(); ++i) {
        const SplitInfo info = split_info(shards[i]);
        const std::string& source = shards[i].metadata.source();
        if (info.number != i || info.count != shards.size()) {
            fail(TSR_CORRUPT_DATA,
                 "{}: expected part {} of {}, but its keys 'split.no' and 'split.count' say part {} of {}", source,
                 i + 1, shards.size(), uint64_t{info.number} + 1, info.count);
        }
        if (info.tensors != first.tensors) {
            fail(TSR_CORRUPT_DATA, "{}: key 'split.tensors.count': {} tensors in all parts, but the first part says {}",
                 source, info.tensors, first.tensors);
        }
        tensors += shards[i].tensors.size();
    }
    if (tensors != first.tensors) {
        fail(TSR_CORRUPT_DATA, "{}: key 'split.tensors.count': expected {} tensors in {} parts, found {}",
             shards[0].metadata.source(), first.tensors, shards.size(), tensors);
    }

    std::unordered_map<std::string, size_t> where;  // name -> shard
    for (size_t i = 0; i < shards.size(); ++i) {
        for (TensorEntry& tensor : shards[i].tensors) {
            tensor.file = static_cast<uint32_t>(i);
            if (const auto [at, added] = where.emplace(tensor.name, i); !added) {
                fail(TSR_CORRUPT_DATA, "{}: tensor '{}' is also in part {}", shards[i].metadata.source(),
                     printable(tensor.name), at->second + 1);
            }
        }
    }
    Header all = std::move(shards[0]);
    for (size_t i = 1; i < shards.size(); ++i) {
        all.file_bytes = checked_add(all.file_bytes, shards[i].file_bytes, "size of all parts");
        std::ranges::move(shards[i].tensors, std::back_inserter(all.tensors));
    }
    return all;
}

}  // namespace tessera::gguf
