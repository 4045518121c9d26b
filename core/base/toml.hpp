// Strict reading of TOML files that people write: every value has the kind that is expected, every key is known.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// A parsed file. Its tables refer to it and must not outlive it. One thread.
class TomlFile {
  public:
    class Table;

    // `name` is for messages. Throws Error(TSR_CORRUPT_DATA) naming file and line, also for more than a mebibyte, for
    // keys of more than 16 parts or 1024 bytes, for more than 16 arrays and tables within each other, and for more than
    // 8192 values.
    TomlFile(std::string_view text, std::string name);
    // Also throws what File throws: only a regular file is read.
    static TomlFile read(const std::filesystem::path& path);
    ~TomlFile();
    TomlFile(TomlFile&&) noexcept;
    TomlFile& operator=(TomlFile&&) noexcept;

    Table root() const;

  private:
    friend class Table;
    struct Content;
    std::unique_ptr<Content> content_;
};

// One table of a file. Each getter throws Error(TSR_CORRUPT_DATA), naming file, line and key, if the value is not of
// its kind or out of its range, and returns nothing if the key is absent. Strings hold no control characters and at
// most 4096 bytes.
class TomlFile::Table {
  public:
    std::optional<std::string> string(std::string_view key);
    std::optional<int64_t> integer(std::string_view key, int64_t minimum, int64_t maximum);
    std::optional<bool> boolean(std::string_view key);
    std::optional<std::vector<std::string>> strings(std::string_view key);
    // A number of MiB or a string with a unit: see parse_size.
    std::optional<uint64_t> size(std::string_view key);
    std::optional<Table> table(std::string_view key);
    std::vector<Table> tables(std::string_view key);  // an array of tables; empty if absent
    void ignore(std::string_view key);

    // Keys in the order of the file.
    std::vector<std::string> keys() const;

    // A value that must be there.
    template <typename T>
    T need(std::optional<T> value, std::string_view key) const {
        if (!value) missing(key);
        return *std::move(value);
    }

    // Throws for a key that no getter has asked for. Called when all is read.
    void finish() const;

    // Throws Error(TSR_CORRUPT_DATA) with the key's line, or the table's if the key is absent, and `message`.
    [[noreturn]] void reject(std::string_view key, std::string_view message) const;

  private:
    friend class TomlFile;
    Table(const Content& content, const void* table, std::string path)
        : content_(&content), table_(table), path_(std::move(path)) {}
    const void* find(std::string_view key);  // toml::node, or nullptr; the key counts as known from now on
    std::string full(std::string_view key) const;
    [[noreturn]] void missing(std::string_view key) const;

    const Content* content_;
    const void* table_;
    std::string path_;
    std::vector<std::string> known_;
};

// Bytes of "24GiB", "512 MiB", "1.5TiB", "4392" (MiB); nothing if it is not such a text, zero, or above 2^50.
std::optional<uint64_t> parse_size(std::string_view text) noexcept;

}  // namespace tessera
