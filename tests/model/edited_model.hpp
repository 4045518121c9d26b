// A small model file in memory, changed and written again.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/gguf/writer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::test {

class EditedModel {
  public:
    struct Tensor {
        std::string name;
        tsr_type type;
        std::vector<uint64_t> dims;
        std::vector<std::byte> bytes;
    };

    explicit EditedModel(const std::filesystem::path& from) {
        const gguf::GgufFile file = gguf::GgufFile::open(from);
        for (const auto& [key, value] : file.metadata().entries()) keys.emplace_back(key, value);
        for (const gguf::TensorEntry& entry : file.tensors()) {
            Tensor tensor{entry.name, entry.type, {entry.dims.begin(), entry.dims.begin() + entry.rank}, {}};
            tensor.bytes.resize(entry.bytes);
            file.read(entry, 0, tensor.bytes);
            tensors.push_back(std::move(tensor));
        }
    }

    std::string architecture() const {
        return std::get<std::string>(
            std::ranges::find(keys, "general.architecture", &std::pair<std::string, gguf::Value>::first)->second);
    }
    void set(std::string_view key, gguf::Value value) {
        remove_key(key);
        keys.emplace_back(key, std::move(value));
    }
    void remove_key(std::string_view key) {
        std::erase_if(keys, [&](const auto& entry) { return entry.first == key; });
    }
    void rename_architecture(std::string_view name) {
        const std::string prefix = architecture() + ".";
        for (auto& entry : keys) {
            if (entry.first.starts_with(prefix)) entry.first.replace(0, prefix.size() - 1, name);
        }
        set("general.architecture", std::string(name));
    }
    bool has_key(std::string_view key) const {
        return std::ranges::any_of(keys, [&](const auto& entry) { return entry.first == key; });
    }
    bool has_tensor(std::string_view name) const {
        return std::ranges::any_of(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
    }
    // Puts the tensors `parts` of equal types, one after the other in each matrix of a stack, in the place of the
    // first.
    void fuse(const std::vector<std::string>& parts, std::string name) {
        Tensor whole = tensor(parts.front());
        const size_t rows = whole.dims.size() > 1 ? 1 : 0;
        const size_t matrices = whole.dims.size() > 2 ? whole.dims[2] : 1;
        whole.name = std::move(name);
        whole.bytes.clear();
        whole.dims[rows] = 0;
        for (const std::string& part : parts) whole.dims[rows] += tensor(part).dims[rows];
        for (size_t i = 0; i < matrices; ++i) {
            for (const std::string& part : parts) {
                const std::vector<std::byte>& bytes = tensor(part).bytes;
                const auto size = static_cast<ptrdiff_t>(bytes.size() / matrices);
                const auto from = bytes.begin() + static_cast<ptrdiff_t>(i) * size;
                whole.bytes.insert(whole.bytes.end(), from, from + size);
            }
        }
        for (const std::string& part : parts) remove_tensors(part);
        tensors.push_back(std::move(whole));
    }
    void remove_tensors(std::string_view part) {
        std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name.find(part) != std::string::npos; });
    }
    Tensor& tensor(std::string_view name) { return *std::ranges::find(tensors, name, &Tensor::name); }
    void add(std::string name, std::vector<uint64_t> dims, const std::vector<float>& values) {
        Tensor tensor{std::move(name), TSR_TYPE_F32, std::move(dims), {}};
        const auto bytes = std::as_bytes(std::span(values));
        tensor.bytes.assign(bytes.begin(), bytes.end());
        tensors.push_back(std::move(tensor));
    }

    // Returns `path`.
    std::filesystem::path write(const std::filesystem::path& path) const {
        gguf::Writer writer(path);
        for (const auto& [key, value] : keys) writer.add(key, value);
        for (const Tensor& tensor : tensors) writer.add_tensor(tensor.name, tensor.type, tensor.dims);
        for (const Tensor& tensor : tensors) writer.write(tensor.bytes);
        writer.finish();
        return path;
    }

    std::vector<std::pair<std::string, gguf::Value>> keys;
    std::vector<Tensor> tensors;
};

}  // namespace tessera::test
