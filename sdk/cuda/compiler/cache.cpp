#include "cache.hpp"

#include "sources.hpp"

#include <openssl/evp.h>

#include <stdexcept>

namespace tessera::cuda::compiler {

namespace fs = std::filesystem;

Hash::Hash() : context_(EVP_MD_CTX_new()) {
    if (!context_ || EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr) != 1) {
        EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_));
        throw std::runtime_error("OpenSSL offers no SHA-256");
    }
}

Hash::~Hash() {
    EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_));
}

Hash& Hash::add(std::string_view part) {
    const std::string length = std::to_string(part.size()) + ":";
    auto* context = static_cast<EVP_MD_CTX*>(context_);
    if (EVP_DigestUpdate(context, length.data(), length.size()) != 1 ||
        EVP_DigestUpdate(context, part.data(), part.size()) != 1)
        throw std::runtime_error("SHA-256 failed");
    return *this;
}

std::string Hash::text() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    if (EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_), digest, &bytes) != 1)
        throw std::runtime_error("SHA-256 failed");
    std::string text;
    for (unsigned i = 0; i < bytes; ++i) {
        constexpr const char* kDigits = "0123456789abcdef";
        text += kDigits[digest[i] >> 4];
        text += kDigits[digest[i] & 15];
    }
    return text;
}

std::string Cache::get(const std::string& key, const std::function<std::string()>& make) const {
    if (folder_.empty()) return make();
    const fs::path path = folder_ / key.substr(0, 2) / key;
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) {
        try {
            return read_file(path);
        } catch (const std::exception&) {
            // Removed meanwhile: it is made again.
        }
    }
    std::string made = make();
    try {
        write_file(path, made);
    } catch (const std::exception&) {
        // Full or not writable: the result is there all the same.
    }
    return made;
}

}  // namespace tessera::cuda::compiler
