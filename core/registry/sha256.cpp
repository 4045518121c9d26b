#include "core/registry/sha256.hpp"

#include "core/base/error.hpp"
#include "core/base/file.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace tessera {

namespace {

class Sha256 {
  public:
    Sha256() { good_ = context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1; }

    void add(std::span<const std::byte> bytes) {
        good_ = good_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
    }

    std::string digest() {
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned length = 0;
        if (!good_ || EVP_DigestFinal_ex(context_.get(), digest, &length) != 1)
            fail(TSR_INTERNAL, "the cryptographic library could not compute SHA-256");
        std::string text;
        for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
        return text;
    }

  private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(), EVP_MD_CTX_free};
    bool good_;
};

}  // namespace

std::string sha256_of(std::string_view text) {
    Sha256 hash;
    hash.add(std::as_bytes(std::span(text)));
    return hash.digest();
}

std::string sha256_of_file(const std::filesystem::path& path) {
    constexpr uint64_t kBufferBytes = 1 << 20;
    const File file(path);
    Sha256 hash;
    std::vector<std::byte> buffer(std::min(kBufferBytes, file.size()));
    for (uint64_t at = 0; at < file.size(); at += buffer.size()) {
        const std::span<std::byte> part(buffer.data(), std::min<uint64_t>(buffer.size(), file.size() - at));
        file.pread_exact(at, part);
        hash.add(part);
    }
    return hash.digest();
}

bool normalize_sha256(std::string& digest) noexcept {
    if (digest.size() != 64) return false;
    for (char& c : digest) {
        if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return false;
    }
    return true;
}

}  // namespace tessera
