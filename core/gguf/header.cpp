#include "core/gguf/header.hpp"

#include "core/base/checked.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/gguf/foreign_file.hpp"
#include "core/graph/types.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <unordered_set>
#include <utility>

namespace tessera::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

constexpr std::string_view kMagic = "GGUF";
constexpr size_t kWindowBytes = size_t{64} << 10;

// The minimum size of an entry in the file, which limits the counts that a header can state.
constexpr uint64_t kMinimumKeyBytes = 8 + 1 + 4 + 1;  // key of one character, type, value
constexpr uint64_t kMinimumTensorBytes =
    8 + 1 + 4 + 8 + 4 + 8;  // name of one character, rank, one dimension, type, offset

// Calls `work`; `name()` is prepended to the message of an Error from it.
template <typename Name, typename Work>
auto in_context(Name&& name, Work&& work) {
    try {
        return work();
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}", name(), error.what()));
    }
}

// Reads a header from front to back through a window, never past its end.
class Cursor {
  public:
    explicit Cursor(const ByteSource& source) : source_(source), end_(std::min(source.size(), kMaxHeaderBytes)) {}

    uint64_t position() const noexcept { return position_; }
    uint64_t remaining() const noexcept { return end_ - position_; }

    void need(uint64_t bytes, std::string_view what) const {
        if (bytes <= remaining()) return;
        if (end_ < source_.size()) {
            fail(TSR_CORRUPT_DATA, "{} at byte {} takes {} bytes, and the header would exceed {}, the maximum", what,
                 position_, bytes, mebibytes(kMaxHeaderBytes));
        }
        fail(TSR_CORRUPT_DATA,
             "truncated: {} at byte {} takes {} bytes, but the file ends at {}: is the download complete?", what,
             position_, bytes, end_);
    }

    // Fails if the rest of the file is too short for `count` entries of `minimum` bytes.
    void need_count(uint64_t count, uint64_t minimum, std::string_view what) const {
        if (count <= remaining() / minimum) return;
        fail(TSR_CORRUPT_DATA, "{} {} do not fit in the {} bytes that follow byte {}", count, what, remaining(),
             position_);
    }

    void read(std::span<std::byte> out, std::string_view what) {
        need(out.size(), what);
        while (!out.empty()) {
            if (position_ < window_begin_ || position_ >= window_begin_ + window_.size()) fill();
            const auto there = std::span<const std::byte>(window_).subspan(position_ - window_begin_);
            const size_t step = std::min(there.size(), out.size());
            std::memcpy(out.data(), there.data(), step);
            out = out.subspan(step);
            position_ += step;
        }
    }

    template <typename T>
    T number(std::string_view what) {
        T value;
        read(std::as_writable_bytes(std::span(&value, 1)), what);
        return value;
    }

    bool boolean(std::string_view what) {
        const auto value = number<uint8_t>(what);
        if (value > 1) fail(TSR_CORRUPT_DATA, "{}: expected 0 or 1 for a bool, found {}", what, value);
        return value == 1;
    }

    // `out` is reused from call to call.
    void string(std::string& out, std::string_view what, uint64_t limit = kMaxHeaderBytes) {
        const auto length = number<uint64_t>(what);
        if (length > limit)
            fail(TSR_CORRUPT_DATA, "{} of {} bytes is longer than the {} that are allowed", what, length, limit);
        need(length, what);
        out.resize(length);
        read(std::as_writable_bytes(std::span(out)), what);
    }

  private:
    void fill() {
        window_.resize(std::min<uint64_t>(kWindowBytes, end_ - position_));
        window_begin_ = position_;
        source_.read(position_, window_);
    }

    const ByteSource& source_;
    uint64_t end_;
    uint64_t position_ = 0;
    uint64_t window_begin_ = 0;
    std::vector<std::byte> window_;
};

// Names go into messages, command lines and JSON, so they hold text only.
void check_name(std::string_view name, std::string_view what) {
    if (name.empty()) fail(TSR_CORRUPT_DATA, "{} is empty", what);
    if (!is_utf8(name)) fail(TSR_CORRUPT_DATA, "{} '{}' is not valid UTF-8", what, printable(name));
    if (printable(name, 4 * name.size()) != name)
        fail(TSR_CORRUPT_DATA, "{} '{}' holds control characters", what, printable(name));
}

// Fails if the file is of another format that is known, or empty.
void check_foreign(const ByteSource& source) {
    std::string begin(std::min(source.size(), kForeignBytes), '\0');
    source.read(0, std::as_writable_bytes(std::span(begin)));
    if (begin.starts_with(kMagic)) return;
    if (const std::string what = foreign_contents(begin, source.size()); !what.empty())
        fail(TSR_CORRUPT_DATA, "not a GGUF file: {}", what);
}

uint32_t read_preamble(Cursor& in) {
    std::string magic(kMagic.size(), '\0');
    in.read(std::as_writable_bytes(std::span(magic)), "magic");
    if (magic != kMagic) {
        fail(TSR_CORRUPT_DATA, "not a GGUF file: expected it to begin with '{}', found '{}'", kMagic, printable(magic));
    }
    const auto version = in.number<uint32_t>("version");
    if (version == 2 || version == 3) return version;
    if (version != 0 && (version & 0xFFFF) == 0) {
        fail(TSR_UNSUPPORTED,
             "big-endian file (version reads as {:#x}); only little-endian ones are supported: convert it", version);
    }
    fail(TSR_UNSUPPORTED, "GGUF version {} is not supported, expected 2 or 3: convert the model again", version);
}

ValueType read_type(Cursor& in, std::string_view what) {
    const auto id = in.number<uint32_t>(what);
    if (id >= kValueTypes) fail(TSR_CORRUPT_DATA, "{} {} is unknown, expected 0 to {}", what, id, kValueTypes - 1);
    return static_cast<ValueType>(id);
}

// Calls `visit.template operator()<I>()` with I equal to `at`: from a type number to its alternative.
template <size_t I = 0, typename Visit>
auto visit_index(size_t at, Visit&& visit) -> decltype(visit.template operator()<0>()) {
    if constexpr (I + 1 < kValueTypes) {
        if (at != I) return visit_index<I + 1>(at, std::forward<Visit>(visit));
    }
    return visit.template operator()<I>();
}

template <typename Elements>
Elements read_elements(Cursor& in, uint64_t count) {
    Elements out;
    if constexpr (std::is_same_v<Elements, NoNesting>) {
        fail(TSR_UNSUPPORTED, "arrays of arrays are not supported");
    } else if constexpr (std::is_same_v<Elements, StringArray>) {
        in.need_count(count, sizeof(uint64_t), "strings");
        out.reserve(count);
        std::string text;
        for (uint64_t i = 0; i < count; ++i) {
            in.string(text, "string of an array");
            out.push_back(text);
        }
    } else if constexpr (std::is_same_v<Elements, std::vector<bool>>) {
        in.need_count(count, 1, "bools");
        out.reserve(count);
        for (uint64_t i = 0; i < count; ++i) out.push_back(in.boolean("element of an array"));
    } else {
        in.need_count(count, sizeof(typename Elements::value_type), "array elements");
        out.resize(count);
        in.read(std::as_writable_bytes(std::span(out)), "array elements");
    }
    return out;
}

Value read_value(Cursor& in) {
    const ValueType type = read_type(in, "value type");
    return visit_index(static_cast<size_t>(type), [&]<size_t I>() -> Value {
        using T = std::variant_alternative_t<I, AnyValue>;
        if constexpr (std::is_same_v<T, bool>) {
            return in.boolean("value");
        } else if constexpr (std::is_same_v<T, std::string>) {
            std::string text;
            in.string(text, "string");
            return text;
        } else if constexpr (std::is_same_v<T, Array>) {
            const ValueType element = read_type(in, "array element type");
            const auto count = in.number<uint64_t>("array length");
            return visit_index(static_cast<size_t>(element), [&]<size_t J>() -> Array {
                return Array(std::in_place_index<J>, read_elements<std::variant_alternative_t<J, AnyArray>>(in, count));
            });
        } else {
            return in.number<T>("value");
        }
    });
}

void read_metadata(Cursor& in, uint64_t count, Metadata& metadata) {
    std::string key;
    for (uint64_t i = 0; i < count; ++i) {
        in_context([&] { return fmt::format("key {} of {}", i + 1, count); },
                   [&] {
                       in.string(key, "key", kMaxKeyBytes);
                       check_name(key, "key");
                   });
        in_context([&] { return fmt::format("key '{}'", key); },
                   [&] {
                       if (metadata.contains(key)) fail(TSR_CORRUPT_DATA, "occurs twice");
                       metadata.add(key, read_value(in));
                   });
    }
}

// Everything but the name; `offset` is still relative to the data.
void read_tensor(Cursor& in, TensorEntry& tensor) {
    tensor.rank = in.number<uint32_t>("rank");
    if (tensor.rank < 1 || tensor.rank > kMaxRank) {
        fail(TSR_CORRUPT_DATA, "expected 1 to {} dimensions, found {}", kMaxRank, tensor.rank);
    }
    uint64_t elements = 1;
    for (uint32_t d = 0; d < tensor.rank; ++d) {
        tensor.dims[d] = in.number<uint64_t>("dimension");
        if (tensor.dims[d] == 0) fail(TSR_CORRUPT_DATA, "dimension {} is 0", d);
        elements = checked_mul(elements, tensor.dims[d], "number of elements");
    }
    checked_cast<int64_t>(elements, "number of elements");
    tensor.type = in.number<uint32_t>("element type");
    const TypeInfo& type = type_info(tensor.type);
    if (tensor.type >= TSR_TYPE_FIRST_PRIVATE)
        fail(TSR_UNSUPPORTED, "element type {} cannot occur in files", tensor.type);
    // The rows of each matrix are interleaved separately.
    if (type.interleaved_rows > 1 && (tensor.rank < 2 || tensor.dims[1] % type.interleaved_rows != 0)) {
        fail(TSR_CORRUPT_DATA, "{} interleaves {} rows; found {} rows, which are not a multiple", type.name,
             type.interleaved_rows, tensor.rank < 2 ? 1 : tensor.dims[1]);
    }
    tensor.bytes = checked_mul(row_bytes(tensor.type, tensor.dims[0]), tensor.rows(), "size in bytes");
    tensor.offset = in.number<uint64_t>("offset");
}

void read_tensors(Cursor& in, uint64_t count, std::vector<TensorEntry>& tensors) {
    std::unordered_set<std::string> names;
    for (uint64_t i = 0; i < count; ++i) {
        TensorEntry tensor;
        in_context([&] { return fmt::format("tensor {} of {}", i + 1, count); },
                   [&] {
                       in.string(tensor.name, "name", kMaxNameBytes);
                       check_name(tensor.name, "name");
                   });
        in_context([&] { return fmt::format("tensor '{}'", tensor.name); },
                   [&] {
                       if (!names.insert(tensor.name).second) fail(TSR_CORRUPT_DATA, "occurs twice");
                       read_tensor(in, tensor);
                   });
        tensors.push_back(std::move(tensor));
    }
}

// Converts offsets to positions in the file and checks that tensors do not overlap.
void place_tensors(Header& header) {
    for (TensorEntry& tensor : header.tensors) {
        in_context([&] { return fmt::format("tensor '{}'", tensor.name); },
                   [&] {
                       if (tensor.offset % header.alignment != 0) {
                           fail(TSR_CORRUPT_DATA, "its offset {} is not a multiple of the alignment {}", tensor.offset,
                                header.alignment);
                       }
                       tensor.offset = checked_add(header.data_begin, tensor.offset, "offset");
                       const uint64_t end = checked_add(tensor.offset, tensor.bytes, "end");
                       if (end > header.file_bytes) {
                           fail(
                               TSR_CORRUPT_DATA,
                               "its {} bytes at {} would end at {}, but the file ends at {}: is the download complete?",
                               tensor.bytes, tensor.offset, end, header.file_bytes);
                       }
                   });
    }
    std::vector<const TensorEntry*> order;
    order.reserve(header.tensors.size());
    for (const TensorEntry& tensor : header.tensors) order.push_back(&tensor);
    std::ranges::sort(order, {}, &TensorEntry::offset);
    for (size_t i = 1; i < order.size(); ++i) {
        const TensorEntry& before = *order[i - 1];
        const TensorEntry& after = *order[i];
        if (before.offset + before.bytes > after.offset) {
            fail(TSR_CORRUPT_DATA, "tensors '{}' and '{}' overlap at byte {}", before.name, after.name, after.offset);
        }
    }
}

uint64_t read_count(Cursor& in, uint64_t maximum, std::string_view what) {
    const auto count = in.number<uint64_t>(fmt::format("number of {}", what));
    if (count > maximum) fail(TSR_CORRUPT_DATA, "{} {} are claimed; at most {} are accepted", count, what, maximum);
    return count;
}

void parse(Cursor& in, Header& header) {
    header.version = read_preamble(in);
    const uint64_t tensors = read_count(in, kMaxTensors, "tensors");
    const uint64_t keys = read_count(in, kMaxKeys, "keys");
    in.need_count(keys, kMinimumKeyBytes, "keys");
    in.need_count(tensors, kMinimumTensorBytes, "tensors");
    read_metadata(in, keys, header.metadata);
    header.alignment = data_alignment(header.metadata);
    in.need_count(tensors, kMinimumTensorBytes, "tensors");
    header.tensors.reserve(tensors);
    read_tensors(in, tensors, header.tensors);
    header.data_begin = checked_align_up(in.position(), header.alignment, "start of the tensors' bytes");
    place_tensors(header);
}

}  // namespace

std::string shape_text(const TensorEntry& tensor) {
    return fmt::format("[{}]", fmt::join(tensor.dims.begin(), tensor.dims.begin() + tensor.rank, ", "));
}

uint64_t data_alignment(const Metadata& metadata) {
    const Value* const value = metadata.find(kAlignmentKey);
    if (!value) return kDefaultAlignment;
    const uint32_t* const alignment = std::get_if<uint32_t>(value);
    if (!alignment || !std::has_single_bit(*alignment) || *alignment > kMaxAlignment) {
        fail(TSR_CORRUPT_DATA, "key '{}': expected a u32 that is a power of two up to {}, found {} {}", kAlignmentKey,
             kMaxAlignment, describe_type(*value), to_text(*value));
    }
    return *alignment;
}

Header parse_header(const ByteSource& source) {
    Header header;
    header.metadata = Metadata(source.name());
    header.file_bytes = source.size();
    in_context([&] { return source.name(); },
               [&] {
                   check_foreign(source);
                   Cursor in(source);
                   parse(in, header);
               });
    return header;
}

}  // namespace tessera::gguf
