// What the server proves by TLS that it is: a certificate and its key.
#pragma once

#include <openssl/types.h>

#include <filesystem>
#include <memory>
#include <string>

namespace tessera::server {

struct SslDeleter {
    void operator()(SSL* connection) const noexcept;
    void operator()(SSL_CTX* context) const noexcept;
};
using SslConnection = std::unique_ptr<SSL, SslDeleter>;

// TLS 1.2 and 1.3 (RFC 5246, RFC 8446) as OpenSSL offers them by default, for HTTP/1.1 (ALPN, RFC 7301). Sessions are
// resumed by tickets, and nothing of them is kept here. One thread at a time.
class TlsIdentity {
  public:
    // Files in PEM: the certificate, behind it those that lead to one that clients know; its key. Throws Error that
    // names the flag and the file: it cannot be read, is something else, is encrypted, does not belong to the other, is
    // not valid today. Warns of a key that all users may read.
    TlsIdentity(std::filesystem::path certificate, std::filesystem::path key);

    // Reads both files again, for connections that begin from now on. Throws as the constructor does; what there was
    // stays in force then.
    void reload();

    // The server's side of a connection that has not begun. Throws std::bad_alloc.
    SslConnection connection() const;

    // Whom the certificate names and its last day, "DNS:llm.lan, IP Address:10.0.0.2, valid until 2027-01-31".
    const std::string& summary() const noexcept { return summary_; }

  private:
    const std::filesystem::path certificate_, key_;
    std::unique_ptr<SSL_CTX, SslDeleter> context_;
    std::string summary_;
};

}  // namespace tessera::server
