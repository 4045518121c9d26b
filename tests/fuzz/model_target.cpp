#include "tests/fuzz/model_target.hpp"

#include "core/base/error.hpp"
#include "core/gguf/header.hpp"
#include "core/gguf/reader.hpp"
#include "core/gguf/writer.hpp"
#include "core/model/architectures.hpp"
#include "core/model/build_graph.hpp"
#include "core/model/unused.hpp"
#include "tests/fuzz/promises.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera::fuzz {
namespace {

std::string_view take(std::string_view& rest, char end) {
    const size_t at = std::min(rest.find(end), rest.size());
    const std::string_view part = rest.substr(0, at);
    rest.remove_prefix(std::min(at + 1, rest.size()));
    return part;
}

template <typename T>
T number(std::string_view text) {
    T value{};
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

template <typename T, typename Read>
gguf::Array array_of(std::string_view rest, const Read& read) {
    std::vector<T> all;
    while (!rest.empty()) all.push_back(read(take(rest, ' ')));
    return gguf::Array(std::move(all));
}

gguf::Value integer(std::string_view text) {
    const auto value = number<int64_t>(text);
    if (value >= 0 && value <= UINT32_MAX) return static_cast<uint32_t>(value);
    return value;
}

void add_key(gguf::Metadata& metadata, std::string_view line) {
    std::string key(take(line, ' '));
    const std::string_view kind = take(line, ' ');
    if (key.empty() || kind.size() != 1 || metadata.contains(key)) return;
    const auto add = [&](gguf::Value value) { metadata.add(std::move(key), std::move(value)); };
    switch (kind[0]) {
        case 'i':
            return add(integer(line));
        case 'f':
            return add(number<float>(line));
        case 'b':
            return add(line == "1");
        case 's':
            return add(std::string(line));
        case 'I':
            return add(array_of<int32_t>(line, number<int32_t>));
        case 'F':
            return add(array_of<float>(line, number<float>));
        case 'B':
            return add(array_of<bool>(line, [](std::string_view one) { return one == "1"; }));
        case 'S': {
            gguf::StringArray all;
            while (!line.empty()) all.push_back(take(line, ' '));
            return add(gguf::Array(std::move(all)));
        }
        default:
            return;
    }
}

void add_tensor(std::vector<gguf::TensorEntry>& tensors, std::string_view line) {
    gguf::TensorEntry tensor;
    tensor.name = take(line, ' ');
    tensor.type = static_cast<tsr_type>(number<int32_t>(take(line, ' ')));
    for (tensor.rank = 0; !line.empty() && tensor.rank < gguf::kMaxRank; ++tensor.rank)
        tensor.dims[tensor.rank] = number<uint64_t>(take(line, ' '));
    tensors.push_back(std::move(tensor));
}

// A file of the header alone, of the size that it tells.
class SparseFile {
  public:
    SparseFile(std::span<const std::byte> header, uint64_t size) : descriptor_(memfd_create("model", 0)) {
        if (descriptor_ < 0 ||
            write(descriptor_, header.data(), header.size()) != static_cast<ssize_t>(header.size()) ||
            ftruncate(descriptor_, static_cast<off_t>(size)) != 0) {
            close(descriptor_);
            fail(TSR_UNSUPPORTED, "no file of {} bytes", size);
        }
    }
    ~SparseFile() { close(descriptor_); }
    SparseFile(const SparseFile&) = delete;
    SparseFile& operator=(const SparseFile&) = delete;
    std::filesystem::path path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

  private:
    int descriptor_;
};

void check_description(const ModelDescription& model) {
    expect(model.embedding > 0 && model.vocabulary > 0 && !model.layers.empty(), "a model of something");
    for (const Layer& layer : model.layers) {
        const Attention& a = layer.attention;
        expect(a.heads > 0 && a.kv_heads > 0 && a.heads % a.kv_heads == 0, "heads");
        expect(a.key_length > 0 && a.value_length > 0 && a.window >= 0, "lengths");
        if (a.rope) expect(a.rope->dimensions > 0 && a.rope->dimensions % 2 == 0, "pairs of the rotary embedding");
        if (layer.feed_forward.experts) {
            const Experts& experts = *layer.feed_forward.experts;
            expect(experts.used > 0 && experts.used <= experts.count && experts.length > 0, "experts");
        }
    }
}

bool use_model(const gguf::GgufFile& file) {
    for (const Architecture* architecture : own_architectures()) {
        ModelFile model(file);
        if (!architecture->has_name(model.architecture())) continue;
        const ModelDescription described = architecture->describe(model);
        check_description(described);
        const OpSet ops;
        GraphLimits limits;
        limits.rows = 8;
        build_graph(described, model, ops, limits);
        check_unused(model, architecture->unused, false);
        return true;
    }
    return false;
}

}  // namespace

bool run_model(std::string_view input) {
    gguf::Metadata metadata("input");
    std::vector<gguf::TensorEntry> tensors;
    const auto built = attempt([&] {
        for (std::string_view rest = input; !rest.empty();) {
            std::string_view line = take(rest, '\n');
            if (line.starts_with('+')) {
                line.remove_prefix(1);
                add_tensor(tensors, line);
            } else {
                add_key(metadata, line);
            }
        }
        const std::vector<std::byte> header = gguf::write_header(metadata, tensors);
        const uint64_t size = tensors.empty() ? header.size() : tensors.back().offset + tensors.back().bytes;
        const SparseFile file(header, size);
        return use_model(gguf::GgufFile::open(file.path()));
    });
    return built.value_or(false);
}

}  // namespace tessera::fuzz
