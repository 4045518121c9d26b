#include "apps/server/tls_identity.hpp"

#include "apps/server/given_file.hpp"
#include "core/base/error.hpp"
#include "core/base/log.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <spdlog/fmt/fmt.h>

#include <ctime>
#include <new>
#include <string_view>
#include <utility>

namespace tessera::server {
namespace {

constexpr uint64_t kFileBytes = 1 << 20;
constexpr size_t kNamesBytes = 200;  // of what is said of a certificate
constexpr std::string_view kCertificateFlag = "--tls-cert", kKeyFlag = "--tls-key";
// What is chosen from among what a client offers, best first; each behind its length.
constexpr unsigned char kProtocols[] = "\x08http/1.1\x08http/1.0";

struct Deleter {
    void operator()(BIO* bio) const noexcept { BIO_free(bio); }
    void operator()(X509* certificate) const noexcept { X509_free(certificate); }
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
template <typename T>
using Owned = std::unique_ptr<T, Deleter>;

// Of the last thing that failed, in OpenSSL's words.
std::string openssl_reason() {
    const unsigned long code = ERR_peek_last_error();
    const char* const text = code ? ERR_reason_error_string(code) : nullptr;
    return text ? text : "unknown reason";
}

[[noreturn]] void refuse(std::string_view flag, const std::filesystem::path& path, std::string_view why) {
    fail(TSR_INVALID_ARGUMENT, "{} {}: {}", flag, path.string(), why);
}

Owned<BIO> reader_of(const std::string& text) {
    Owned<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    if (!bio) throw std::bad_alloc();
    return bio;
}

int no_passphrase(char*, int, int, void* asked) {
    if (asked) *static_cast<bool*>(asked) = true;
    return -1;
}

std::string date_of(const ASN1_TIME* time) {
    std::tm parts{};
    if (ASN1_TIME_to_tm(time, &parts) != 1) return "a date that cannot be read";
    return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

// The names that clients compare (RFC 6125), or, in an old certificate without such, that of its subject.
std::string names_of(X509* certificate) {
    const Owned<BIO> out(BIO_new(BIO_s_mem()));
    if (!out) throw std::bad_alloc();
    const int at = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1);
    const bool printed =
        at >= 0 ? X509V3_EXT_print(out.get(), X509_get_ext(certificate, at), X509V3_EXT_ERROR_UNKNOWN, 0) == 1
                : X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE) >= 0;
    char* text = nullptr;
    const long bytes = BIO_get_mem_data(out.get(), &text);
    if (!printed || bytes <= 0) return "without a name";
    std::string names(text, static_cast<size_t>(bytes));
    if (names.size() > kNamesBytes) names.replace(kNamesBytes, names.npos, " ...");
    return names;
}

Owned<X509> certificate_of(const std::filesystem::path& path, const std::string& text, SSL_CTX* context) {
    const Owned<BIO> file = reader_of(text);
    Owned<X509> own(PEM_read_bio_X509_AUX(file.get(), nullptr, no_passphrase, nullptr));
    if (!own) {
        const bool none = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
        refuse(kCertificateFlag, path,
               none ? "expected a certificate in PEM, which begins with -----BEGIN CERTIFICATE-----, found none"
                    : fmt::format("the certificate cannot be read: {}", openssl_reason()));
    }
    const ASN1_TIME* const begin = X509_get0_notBefore(own.get());
    const ASN1_TIME* const end = X509_get0_notAfter(own.get());
    if (X509_cmp_current_time(begin) > 0)
        refuse(kCertificateFlag, path,
               fmt::format("the certificate is not valid before {}: look at this machine's clock", date_of(begin)));
    if (X509_cmp_current_time(end) < 0)
        refuse(kCertificateFlag, path,
               fmt::format("the certificate has expired on {}: no client would take it, get a new one", date_of(end)));
    if (SSL_CTX_use_certificate(context, own.get()) != 1)
        refuse(kCertificateFlag, path, fmt::format("OpenSSL does not take the certificate: {}", openssl_reason()));
    while (Owned<X509> other{PEM_read_bio_X509(file.get(), nullptr, no_passphrase, nullptr)}) {
        if (SSL_CTX_add0_chain_cert(context, other.get()) != 1)
            refuse(kCertificateFlag, path, fmt::format("OpenSSL does not take the chain: {}", openssl_reason()));
        static_cast<void>(other.release());
    }
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        refuse(kCertificateFlag, path,
               fmt::format("a certificate behind the first cannot be read: {}", openssl_reason()));
    return own;
}

void use_key(const std::filesystem::path& path, const std::string& text, X509* certificate, SSL_CTX* context) {
    const Owned<BIO> file = reader_of(text);
    bool encrypted = false;
    const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(file.get(), nullptr, no_passphrase, &encrypted));
    if (encrypted)
        refuse(kKeyFlag, path,
               "the key is encrypted, and a server has nobody to ask for its passphrase: 'openssl pkey -in KEY -out "
               "FILE' decrypts it; let only the server's user read that file");
    if (!key) {
        const int why = ERR_GET_REASON(ERR_peek_last_error());
        const bool none = why == PEM_R_NO_START_LINE || why == ERR_R_UNSUPPORTED;
        refuse(kKeyFlag, path,
               none ? "expected a private key in PEM, which begins with -----BEGIN PRIVATE KEY----- or the like, "
                      "found none"
                    : fmt::format("the key cannot be read: {}", openssl_reason()));
    }
    if (X509_check_private_key(certificate, key.get()) != 1)
        refuse(kKeyFlag, path, fmt::format("this is not the key of the certificate ({})", openssl_reason()));
    if (SSL_CTX_use_PrivateKey(context, key.get()) != 1)
        refuse(kKeyFlag, path, fmt::format("OpenSSL does not take the key: {}", openssl_reason()));
}

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_bytes, const unsigned char* offered,
                    unsigned offered_bytes, void*) {
    unsigned char* found = nullptr;
    if (SSL_select_next_proto(&found, chosen_bytes, kProtocols, sizeof kProtocols - 1, offered, offered_bytes) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

std::unique_ptr<SSL_CTX, SslDeleter> make_context() {
    std::unique_ptr<SSL_CTX, SslDeleter> context(SSL_CTX_new(TLS_server_method()));
    if (!context) throw std::bad_alloc();
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    // What a client could make the server compute again and again.
    SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
    // Buffers only while there is something in them; writes of what is left, from wherever it lies by then.
    SSL_CTX_set_mode(context.get(),
                     SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    // Else records without data could keep a read going for ever.
    SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
    return context;
}

}  // namespace

void SslDeleter::operator()(SSL* connection) const noexcept {
    SSL_free(connection);
}
void SslDeleter::operator()(SSL_CTX* context) const noexcept {
    SSL_CTX_free(context);
}

TlsIdentity::TlsIdentity(std::filesystem::path certificate, std::filesystem::path key)
    : certificate_(std::move(certificate)), key_(std::move(key)) {
    reload();
}

void TlsIdentity::reload() {
    ERR_clear_error();
    const GivenFile certificate = read_given_file(kCertificateFlag, certificate_, kFileBytes);
    GivenFile key = read_given_file(kKeyFlag, key_, kFileBytes);
    struct Wiping {
        std::string& text;
        ~Wiping() { OPENSSL_cleanse(text.data(), text.size()); }
    } const wiping{key.text};
    auto context = make_context();
    const Owned<X509> own = certificate_of(certificate_, certificate.text, context.get());
    ERR_clear_error();
    use_key(key_, key.text, own.get(), context.get());
    ERR_clear_error();
    if (key.for_all)
        log().warn("{} {}: all users of this machine may read the key, and be this server with it: chmod o-r", kKeyFlag,
                   key_.string());
    summary_ = fmt::format("{}, valid until {}", names_of(own.get()), date_of(X509_get0_notAfter(own.get())));
    ERR_clear_error();
    context_ = std::move(context);
}

SslConnection TlsIdentity::connection() const {
    SslConnection connection(SSL_new(context_.get()));
    if (!connection) throw std::bad_alloc();
    SSL_set_accept_state(connection.get());
    return connection;
}

}  // namespace tessera::server
