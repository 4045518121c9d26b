#include "core/gguf/writer.hpp"

#include "core/base/checked.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/graph/types.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

namespace tessera::gguf {
namespace {

class Encoder {
  public:
    uint64_t size() const noexcept { return out_.size(); }
    std::vector<std::byte> take() { return std::move(out_); }

    void bytes(std::span<const std::byte> data) {
        const size_t at = out_.size();
        out_.resize(at + data.size());
        std::ranges::copy(data, out_.begin() + static_cast<ptrdiff_t>(at));
    }

    template <typename T>
    requires std::is_arithmetic_v<T>
    void put(T number) {
        static_assert(!std::is_same_v<T, bool> || sizeof(bool) == 1);
        bytes(std::as_bytes(std::span(&number, 1)));
    }

    void put(std::string_view text) {
        put<uint64_t>(text.size());
        bytes(std::as_bytes(std::span(text)));
    }

    void put(NoNesting) { fail(TSR_UNSUPPORTED, "arrays of arrays are not supported"); }

    void put(const Array& array) {
        put(static_cast<uint32_t>(element_type(array)));
        put<uint64_t>(array_size(array));
        std::visit(
            [&](const auto& elements) {
                if constexpr (std::is_same_v<std::decay_t<decltype(elements)>, NoNesting>) {
                    put(elements);
                } else {
                    for (const auto element : elements) put(element);
                }
            },
            array);
    }

    void put(const Value& value) {
        put(static_cast<uint32_t>(type_of(value)));
        std::visit(
            [&](const auto& one) {
                if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::string>) {
                    put(std::string_view(one));
                } else {
                    put(one);
                }
            },
            value);
    }

    void pad(uint64_t alignment) { out_.resize(checked_align_up(out_.size(), alignment, "size of the header")); }

  private:
    std::vector<std::byte> out_;
};

}  // namespace

std::vector<std::byte> write_header(const Metadata& metadata, std::vector<TensorEntry>& tensors) {
    const uint64_t alignment = data_alignment(metadata);
    Encoder out;
    out.bytes(std::as_bytes(std::span(std::string_view("GGUF"))));
    out.put<uint32_t>(3);
    out.put<uint64_t>(tensors.size());
    out.put<uint64_t>(metadata.entries().size());
    for (const auto& [key, value] : metadata.entries()) {
        out.put(std::string_view(key));
        out.put(value);
    }
    uint64_t end = 0;  // of the data so far
    for (TensorEntry& tensor : tensors) {
        const std::string name = printable(tensor.name);
        out.put(std::string_view(tensor.name));
        out.put(tensor.rank);
        for (uint32_t d = 0; d < tensor.rank; ++d) out.put(tensor.dims[d]);
        out.put(tensor.type);
        out.put(end);
        tensor.offset = end;
        tensor.bytes = row_bytes(tensor.type, tensor.dims[0]);
        for (uint32_t d = 1; d < tensor.rank; ++d) tensor.bytes = checked_mul(tensor.bytes, tensor.dims[d], name);
        end = checked_align_up(checked_add(end, tensor.bytes, name), alignment, name);
    }
    out.pad(alignment);
    for (TensorEntry& tensor : tensors) tensor.offset += out.size();
    end = checked_add(end, out.size(), "size of the file");

    std::vector<std::byte> header = out.take();
    parse_header(MemorySource(header, metadata.source(), end));  // a file that the reader refuses is not written
    return header;
}

Writer::Writer(const std::filesystem::path& path) : metadata_(printable(path.native(), 4096)), out_(path) {}

void Writer::add_tensor(std::string name, tsr_type type, std::span<const uint64_t> dims) {
    if (dims.empty() || dims.size() > kMaxRank) {
        fail(TSR_INVALID_ARGUMENT, "tensor '{}': expected 1 to {} dimensions, found {}", printable(name), kMaxRank,
             dims.size());
    }
    TensorEntry tensor{.name = std::move(name), .type = type, .rank = static_cast<uint32_t>(dims.size())};
    std::ranges::copy(dims, tensor.dims.begin());
    tensors_.push_back(std::move(tensor));
}

void Writer::begin_data() {
    if (in_data_) return;
    out_.append(write_header(metadata_, tensors_));
    in_data_ = true;
}

void Writer::pad_to(uint64_t offset) {
    static constexpr std::array<std::byte, 4096> kZeros{};
    while (out_.size() < offset)
        out_.append(std::span(kZeros).first(std::min<uint64_t>(kZeros.size(), offset - out_.size())));
}

void Writer::write(std::span<const std::byte> data) {
    begin_data();
    while (!data.empty()) {
        if (current_ == tensors_.size()) {
            fail(TSR_INVALID_ARGUMENT, "{}: {} bytes more than the declared tensors take", metadata_.source(),
                 data.size());
        }
        const TensorEntry& tensor = tensors_[current_];
        pad_to(tensor.offset);
        const uint64_t left = tensor.offset + tensor.bytes - out_.size();
        const size_t step = std::min<uint64_t>(data.size(), left);
        out_.append(data.first(step));
        data = data.subspan(step);
        if (step == left) ++current_;
    }
}

void Writer::finish() {
    begin_data();
    if (current_ != tensors_.size()) {
        const TensorEntry& tensor = tensors_[current_];
        const uint64_t there = out_.size() > tensor.offset ? out_.size() - tensor.offset : 0;
        fail(TSR_INVALID_ARGUMENT, "{}: tensor '{}' has only {} of its {} bytes", metadata_.source(),
             printable(tensor.name), there, tensor.bytes);
    }
    if (!tensors_.empty()) pad_to(checked_align_up(out_.size(), data_alignment(metadata_), "size"));
    out_.finish();
}

}  // namespace tessera::gguf
