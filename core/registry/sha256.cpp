#include "core/registry/sha256.hpp"

#include "core/base/error.hpp"
#include "core/base/file.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace tessera {

std::string sha256_of_file(const std::filesystem::path& path) {
    constexpr uint64_t kChunkBytes = 1 << 20;
    const File file(path);
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    bool good = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
    std::vector<std::byte> chunk(std::min(kChunkBytes, file.size()));
    for (uint64_t at = 0; good && at < file.size(); at += chunk.size()) {
        const std::span<std::byte> part(chunk.data(), std::min<uint64_t>(chunk.size(), file.size() - at));
        file.pread_exact(at, part);
        good = EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
    }
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    good = good && EVP_DigestFinal_ex(context.get(), digest, &length) == 1;
    if (!good) fail(TSR_INTERNAL, "{}: the cryptographic library could not compute SHA-256", path.string());
    std::string text;
    for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
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
