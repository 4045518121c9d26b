#include "tests/goldens/seeded_model.hpp"

#include "core/base/error.hpp"
#include "core/gguf/writer.hpp"

#include <tessera/formats/half.hpp>

#include <algorithm>
#include <cstring>
#include <span>

namespace tessera::test {
namespace {

constexpr uint64_t kFnvBasis = 0xCBF29CE484222325;
constexpr uint64_t kMostWeights = 1 << 24;  // of one tensor
constexpr std::string_view kPrefix = "seeded.";

// FNV-1a of 64 bits, continued from `value`.
uint64_t fnv1a(std::span<const std::byte> bytes, uint64_t value = kFnvBasis) {
    for (const std::byte byte : bytes) value = (value ^ std::to_integer<uint64_t>(byte)) * 0x100000001B3;
    return value;
}

// The output function of splitmix64.
uint64_t mixed(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

struct SeededTensor {
    std::string name;
    tsr_type type;
    std::vector<uint64_t> dims;
    float centre, scale;
};

template <typename T>
void append(std::vector<std::byte>& bytes, T value) {
    const auto old = bytes.size();
    bytes.resize(old + sizeof(T));
    std::memcpy(&bytes[old], &value, sizeof(T));
}

std::vector<std::byte> weights(uint32_t seed, const SeededTensor& tensor, size_t count) {
    std::vector<std::byte> bytes;
    for (const int32_t unit : seeded_units(seed, tensor.name, count)) {
        // A double has product and sum exactly, so that one rounding is left, fused or not.
        const auto value = static_cast<float>(double{tensor.centre} + double{tensor.scale} * unit);
        if (tensor.type == TSR_TYPE_F16) {
            append(bytes, formats::f32_to_f16(value));
        } else {
            append(bytes, value);
        }
    }
    return bytes;
}

[[noreturn]] void refuse(const gguf::GgufFile& file, std::string_view what) {
    fail(TSR_CORRUPT_DATA, "{}: {}", file.file_path(0).string(), what);
}

std::vector<SeededTensor> seeded_tensors(const gguf::GgufFile& file) {
    const gguf::Metadata& keys = file.metadata();
    const gguf::StringArray& names = keys.get_strings("seeded.names");
    const auto types = keys.get_array<uint32_t>("seeded.types");
    const auto dims = keys.get_array<uint64_t>("seeded.dims");
    const auto centres = keys.get_array<float>("seeded.centres"), scales = keys.get_array<float>("seeded.scales");
    const size_t count = names.size();
    if (types.size() != count || dims.size() != 4 * count || centres.size() != count || scales.size() != count)
        refuse(file, "the arrays seeded.* have not one entry (seeded.dims: four) for each name");
    std::vector<SeededTensor> tensors;
    for (size_t i = 0; i < count; ++i) {
        SeededTensor tensor{std::string(names[i]), static_cast<tsr_type>(types[i]), {}, centres[i], scales[i]};
        if (tensor.type != TSR_TYPE_F32 && tensor.type != TSR_TYPE_F16)
            refuse(file, tensor.name + " is neither f32 nor f16");
        uint64_t elements = 1;
        for (size_t k = 4 * i; k < 4 * i + 4 && dims[k] != 0; ++k) {
            if (dims[k] > kMostWeights / elements) refuse(file, tensor.name + " has too many weights");
            elements *= dims[k];
            tensor.dims.push_back(dims[k]);
        }
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

}  // namespace

std::vector<int32_t> seeded_units(uint32_t seed, std::string_view name, size_t count) {
    const std::string key = std::to_string(seed) + ":" + std::string(name);
    uint64_t state = fnv1a(std::as_bytes(std::span(key)));
    std::vector<int32_t> units(count);
    for (int32_t& unit : units) {
        state += 0x9E3779B97F4A7C15;
        const uint64_t z = mixed(state);
        unit = static_cast<int32_t>((z & 0xFFFF) + (z >> 16 & 0xFFFF) + (z >> 32 & 0xFFFF) + (z >> 48)) - 2 * 65535;
    }
    return units;
}

void write_seeded_model(const gguf::GgufFile& description, const std::filesystem::path& to) {
    const gguf::Metadata& keys = description.metadata();
    const auto seed = keys.get_u32("seeded.seed");
    const std::vector<SeededTensor> tensors = seeded_tensors(description);
    gguf::Writer writer(to);
    for (const auto& [key, value] : keys.entries()) {
        if (!key.starts_with(kPrefix)) writer.add(key, value);
    }
    for (const gguf::TensorEntry& constant : description.tensors())
        writer.add_tensor(constant.name, constant.type, std::span(constant.dims).first(constant.rank));
    for (const SeededTensor& tensor : tensors) writer.add_tensor(tensor.name, tensor.type, tensor.dims);
    for (const gguf::TensorEntry& constant : description.tensors()) {
        std::vector<std::byte> bytes(constant.bytes);
        description.read(constant, 0, bytes);
        writer.write(bytes);
    }
    uint64_t sum = kFnvBasis;
    for (const SeededTensor& tensor : tensors) {
        size_t count = 1;
        for (const uint64_t length : tensor.dims) count *= length;
        const std::vector<std::byte> bytes = weights(seed, tensor, count);
        sum = fnv1a(bytes, sum);
        writer.write(bytes);
    }
    if (sum != keys.get_u64("seeded.checksum"))
        refuse(description, "the weights are not those that were recorded: the checksum differs");
    writer.finish();
}

}  // namespace tessera::test
