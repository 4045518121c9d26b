// Results by a hash of all that they depend on.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace tessera::cuda::compiler {

// SHA-256 in hexadecimal over parts with their lengths. Throws std::runtime_error.
class Hash {
  public:
    Hash();
    ~Hash();
    Hash(const Hash&) = delete;
    Hash& operator=(const Hash&) = delete;
    Hash& add(std::string_view part);
    std::string text();

  private:
    void* context_;
};

class Cache {
  public:
    // An empty path: nothing is kept.
    explicit Cache(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // What was kept under `key`, else what `make` gives, which is then kept. A cache that cannot be written is not
    // used.
    std::string get(const std::string& key, const std::function<std::string()>& make) const;

  private:
    std::filesystem::path folder_;
};

}  // namespace tessera::cuda::compiler
