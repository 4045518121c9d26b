// A model's file as its architecture reads it: the keys under the architecture's prefix and the tensors. What is asked
// for is recorded, so that core/model/unused.hpp knows what of the file the model does without.
#pragma once

#include "core/gguf/reader.hpp"

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace tessera {

// Tensors of a file that are known and not computed with, and why.
struct UnusedTensors {
    std::string pattern;  // a regular expression (PCRE2) that is found in their names
    std::string reason;   // "prediction layers are not used"
};

// `name` of a key is always without the prefix: "block_count" for "llama.block_count". One thread.
class ModelFile {
  public:
    // `file` outlives it. Throws Error(TSR_NOT_FOUND) without the key general.architecture.
    explicit ModelFile(const gguf::GgufFile& file);

    const gguf::GgufFile& file() const noexcept { return file_; }
    const gguf::Metadata& metadata() const noexcept { return file_.metadata(); }
    const std::string& source() const noexcept { return metadata().source(); }
    const std::string& architecture() const noexcept { return architecture_; }
    std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }

    // Reads nothing.
    bool has_key(std::string_view name) const { return metadata().contains(key(name)); }
    // Whether the key is there with a value that means one: some have numbers that stand for none (a scale of 0), which
    // the functions below take as missing.
    bool is_given(std::string_view name) const;
    bool was_read(std::string_view full_key) const { return read_.contains(std::string(full_key)); }

    // Throw Error naming the key: TSR_NOT_FOUND if get finds none, TSR_CORRUPT_DATA for another type or a value out of
    // range. A count lies in minimum .. 2^31 - 1; an array of equal elements, as some converters write one a layer,
    // counts as one number.
    int64_t get_count(std::string_view name, int64_t minimum = 1);
    std::optional<int64_t> find_count(std::string_view name, int64_t minimum = 1);
    // `count` of them: an array of so many elements, or one number for all.
    std::optional<std::vector<int64_t>> find_counts(std::string_view name, size_t count, int64_t minimum = 1);
    // Of each of `count` layers whether it is one: an array of as many booleans or numbers, of which 0 is no, or a
    // number n, by which all are but every n-th (0: all).
    std::optional<std::vector<bool>> find_pattern(std::string_view name, size_t count);
    double get_positive(std::string_view name);
    std::optional<double> find_positive(std::string_view name);
    std::optional<double> find_number(std::string_view name);  // finite
    // As find_counts; finite and not negative.
    std::optional<std::vector<double>> find_numbers(std::string_view name, size_t count);
    std::optional<bool> find_bool(std::string_view name);
    std::optional<std::string_view> find_text(std::string_view name);

    // `value`, or `otherwise` with a word about it: the result depends on it, and the file does not say.
    template <typename T>
    T or_said(std::string_view name, std::optional<T> value, T otherwise) {
        if (value) return *value;
        say_default(name, fmt::format("{}", otherwise));
        return otherwise;
    }
    void say_default(std::string_view name, std::string_view taken);

    // nullptr if it is missing.
    const gguf::TensorEntry* claim_tensor(std::string_view name);
    bool has_tensor(std::string_view name) const { return file_.find_tensor(name) != nullptr; }
    bool is_claimed(std::string_view name) const { return claimed_.contains(std::string(name)); }

    // Tensors that turn out not to be used.
    void leave_out(UnusedTensors tensors) { unused_.push_back(std::move(tensors)); }
    const std::vector<UnusedTensors>& left_out() const noexcept { return unused_; }

    // Lines for people about what was taken, left out or assumed.
    void note(std::string_view line);
    std::vector<std::string> take_notes();

  private:
    void check_elements(const std::string& full_key, const gguf::Array& array, uint64_t count) const;
    int64_t checked_count(const std::string& full_key, uint64_t value, int64_t minimum) const;
    std::string read_key(std::string_view name);

    const gguf::GgufFile& file_;
    std::string architecture_;
    std::unordered_set<std::string> read_, claimed_;
    std::vector<UnusedTensors> unused_;
    std::vector<std::string> notes_, defaults_;
};

}  // namespace tessera
