#include "core/gguf/reader.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/gguf/foreign_file.hpp"
#include "core/gguf/split.hpp"

#include <mutex>
#include <optional>
#include <utility>

namespace tessera::gguf {

struct GgufFile::Shard {
    explicit Shard(const std::filesystem::path& path) : file(path) {}

    const MappedFile& map() {
        std::call_once(once, [this] { mapping.emplace(file); });
        return *mapping;
    }

    File file;
    std::once_flag once;
    std::optional<MappedFile> mapping;
};

GgufFile::GgufFile(GgufFile&&) noexcept = default;
GgufFile& GgufFile::operator=(GgufFile&&) noexcept = default;
GgufFile::~GgufFile() = default;

GgufFile::GgufFile(Header header, std::vector<std::unique_ptr<Shard>> shards)
    : header_(std::move(header)), shards_(std::move(shards)) {
    places_.reserve(header_.tensors.size());
    for (size_t i = 0; i < header_.tensors.size(); ++i) places_.emplace(header_.tensors[i].name, i);
}

namespace {

// Where all shards lie, given one of them and what its header says.
std::vector<std::filesystem::path> shard_paths(const std::filesystem::path& path, const SplitInfo& info) {
    if (info.count == 1) return {path};
    const auto name = parse_split_name(path.filename().native());
    if (!name) {
        fail(TSR_INVALID_ARGUMENT,
             "{}: is part {} of {}, so its name must end in {}, or the other parts cannot be found: rename the "
             "parts",
             printable(path.native(), 4096), info.number + 1, info.count,
             split_file_name({.prefix = "", .number = info.number + 1, .count = info.count}));
    }
    if (name->number != info.number + 1 || name->count != info.count) {
        fail(TSR_CORRUPT_DATA,
             "{}: is named part {} of {}, but its keys 'split.no' and 'split.count' say part {} of {}",
             printable(path.native(), 4096), name->number, name->count, info.number + 1, info.count);
    }
    std::vector<std::filesystem::path> paths;
    for (uint32_t i = 1; i <= info.count; ++i) {
        paths.push_back(path.parent_path() /
                        split_file_name({.prefix = name->prefix, .number = i, .count = info.count}));
        std::error_code unused;
        if (!std::filesystem::exists(paths.back(), unused)) {
            fail(TSR_NOT_FOUND, "{}: part {} of {} is missing, expected beside '{}'",
                 printable(paths.back().native(), 4096), i, info.count, printable(path.filename().native()));
        }
    }
    return paths;
}

}  // namespace

GgufFile GgufFile::open(const std::filesystem::path& path, std::span<const Override> overrides) {
    std::vector<std::unique_ptr<Shard>> shards;
    std::vector<Header> headers;
    const auto add = [&](const std::filesystem::path& at) {
        check_model_path(at);
        shards.push_back(std::make_unique<Shard>(at));
        headers.push_back(parse_header(FileSource(shards.back()->file)));
    };
    add(path);
    const SplitInfo info = split_info(headers[0]);
    if (const auto paths = shard_paths(path, info); paths.size() > 1) {
        shards.clear();
        headers.clear();
        for (const auto& at : paths) add(at);
    }
    Header header = join_shards(std::move(headers));
    std::vector<std::string> added;
    for (const Override& one : overrides) {
        if (!header.metadata.contains(one.key)) added.push_back(one.key);
        header.metadata.set(one.key, one.value);
    }
    GgufFile file(std::move(header), std::move(shards));
    file.added_keys_ = std::move(added);
    return file;
}

void GgufFile::override_metadata(std::span<const Override> overrides) {
    for (const Override& one : overrides) header_.metadata.set(one.key, one.value);
}

const std::filesystem::path& GgufFile::file_path(size_t i) const {
    return shards_.at(i)->file.path();
}

const TensorEntry* GgufFile::find_tensor(std::string_view name) const {
    const auto at = places_.find(name);
    return at == places_.end() ? nullptr : &header_.tensors[at->second];
}

const TensorEntry& GgufFile::tensor(std::string_view name) const {
    if (const TensorEntry* tensor = find_tensor(name)) return *tensor;
    fail(TSR_NOT_FOUND, "{}: tensor '{}' is missing", metadata().source(), printable(name));
}

GgufFile::Shard& GgufFile::shard_of(const TensorEntry& tensor, uint64_t begin, uint64_t bytes) const {
    if (tensor.file >= shards_.size() || begin > tensor.bytes || bytes > tensor.bytes - begin) {
        fail(TSR_INVALID_ARGUMENT, "{}: tensor '{}' has {} bytes, asked for {} at {}", metadata().source(), tensor.name,
             tensor.bytes, bytes, begin);
    }
    return *shards_[tensor.file];
}

void GgufFile::read(const TensorEntry& tensor, uint64_t begin, std::span<std::byte> out) const {
    shard_of(tensor, begin, out.size()).file.pread_exact(tensor.offset + begin, out);
}

std::span<const std::byte> GgufFile::map(const TensorEntry& tensor) const {
    return shard_of(tensor, 0, tensor.bytes).map().bytes().subspan(tensor.offset, tensor.bytes);
}

std::span<const std::byte> GgufFile::acquire(const TensorEntry& tensor, uint64_t begin, uint64_t bytes) const {
    Shard& shard = shard_of(tensor, begin, bytes);
    if (!shard.map().read_in(tensor.offset + begin, bytes, shard.file.path().native())) return {};
    return shard.map().bytes().subspan(tensor.offset + begin, bytes);
}

void GgufFile::drop_pages(const TensorEntry& tensor, uint64_t begin, uint64_t bytes) const {
    shard_of(tensor, begin, bytes).map().drop_pages(tensor.offset + begin, bytes);
}

}  // namespace tessera::gguf
