#include "apps/server/model_host.hpp"
#include "apps/server/server.hpp"
#include "apps/server/tls_identity.hpp"
#include "core/base/error.hpp"
#include "tests/captured_log.hpp"
#include "tests/temporary_folder.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

namespace tessera::server {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

constexpr long kDay = 24 * 3600;

Key make_key() {
    return Key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
}

template <typename Write>
std::string pem(Write write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
    EXPECT_EQ(write(bio.get()), 1);
    char* text = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &text);
    return {text, static_cast<size_t>(size)};
}

// Of a key, signed by itself, valid from and until so many seconds from now on.
std::string certificate_of(EVP_PKEY* key, long from, long until) {
    const std::unique_ptr<X509, decltype(&X509_free)> one(X509_new(), &X509_free);
    X509_gmtime_adj(X509_getm_notBefore(one.get()), from);
    X509_gmtime_adj(X509_getm_notAfter(one.get()), until);
    X509_set_pubkey(one.get(), key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(one.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(one.get(), X509_get_subject_name(one.get()));
    EXPECT_GT(X509_sign(one.get(), key, EVP_sha256()), 0);
    return pem([&](BIO* bio) { return PEM_write_bio_X509(bio, one.get()); });
}

std::string text_of(EVP_PKEY* key, const char* passphrase = nullptr) {
    return pem([&](BIO* bio) {
        return PEM_write_bio_PrivateKey(bio, key, passphrase ? EVP_aes_128_cbc() : nullptr, nullptr, 0, nullptr,
                                        const_cast<char*>(passphrase));
    });
}

class Tls : public testing::Test {
  protected:
    std::filesystem::path file(const char* name, std::string_view text, mode_t mode = 0600) const {
        const auto path = folder_.write(name, text);
        chmod(path.c_str(), mode);
        return path;
    }
    std::string why(const std::filesystem::path& certificate, const std::filesystem::path& key) const {
        try {
            const TlsIdentity identity(certificate, key);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

    const test::TemporaryFolder folder_;
    const Key key_ = make_key();
    const std::string certificate_ = certificate_of(key_.get(), -kDay, kDay);
};

TEST_F(Tls, FilesThatAreNoIdentityAreToldApart) {
    const auto certificate = file("c", certificate_), key = file("k", text_of(key_.get()));
    const auto begins = [](const char* flag, const std::filesystem::path& path) {
        return StartsWith(std::string(flag) + " " + path.string() + ": ");
    };
    EXPECT_EQ(why(certificate, key), "");
    EXPECT_EQ(why(file("chain", certificate_ + "and\n" + certificate_), key), "");
    const auto none = folder_.file("none");
    EXPECT_THAT(why(none, key), begins("--tls-cert", none));
    EXPECT_THAT(why(certificate, none), begins("--tls-key", none));
    EXPECT_THAT(why(folder_.path(), key), HasSubstr("expected a regular file, found a directory"));
    EXPECT_THAT(why("/dev/zero", key), HasSubstr("found a device"));
    EXPECT_THAT(why(file("large", std::string(2 << 20, '\n')), key), HasSubstr("has more than 1048576 bytes"));
    EXPECT_THAT(why(file("empty", ""), key), HasSubstr("-----BEGIN CERTIFICATE-----, found none"));
    EXPECT_THAT(why(key, key), HasSubstr("found none"));
    EXPECT_THAT(why(certificate, certificate), HasSubstr("expected a private key in PEM"));
    EXPECT_THAT(why(certificate, file("e", "")), HasSubstr("expected a private key in PEM"));
    EXPECT_THAT(why(file("cut", certificate_.substr(0, certificate_.size() / 2)), key), HasSubstr("cannot be read"));
    EXPECT_THAT(why(file("tail", certificate_ + certificate_.substr(0, certificate_.size() / 2)), key),
                HasSubstr("behind the first cannot be read"));
    EXPECT_THAT(why(certificate, file("other", text_of(make_key().get()))), HasSubstr("not the key of the cert"));
    EXPECT_THAT(why(certificate, file("locked", text_of(key_.get(), "secret"))), HasSubstr("the key is encrypted"));
    EXPECT_THAT(why(file("old", certificate_of(key_.get(), -2 * kDay, -kDay)), key), HasSubstr("has expired on 2"));
    EXPECT_THAT(why(file("new", certificate_of(key_.get(), kDay, 2 * kDay)), key), HasSubstr("not valid before 2"));
}

TEST_F(Tls, AKeyThatAllMayReadIsSaid) {
    const auto certificate = file("c", certificate_, 0644);
    CapturedLog log;
    EXPECT_EQ(why(certificate, file("k", text_of(key_.get()), 0640)), "");
    EXPECT_EQ(log.text(), "");
    EXPECT_EQ(why(certificate, file("k", text_of(key_.get()), 0644)), "");
    EXPECT_THAT(log.text(), HasSubstr("all users of this machine may read the key"));
}

TEST_F(Tls, WhatDoesNotLoadLeavesWhatThereWas) {
    const auto certificate = file("c", certificate_), key = file("k", text_of(key_.get()));
    TlsIdentity identity(certificate, key);
    const std::string before = identity.summary();
    EXPECT_THAT(before, MatchesRegex("CN = test, valid until 20[0-9]{2}-[0-9]{2}-[0-9]{2}"));
    const auto expect_loaded = [&](const std::string& expected) {
        const SslConnection connection = identity.connection();
        EXPECT_EQ(pem([&](BIO* bio) { return PEM_write_bio_X509(bio, SSL_get_certificate(connection.get())); }),
                  expected);
        EXPECT_NE(SSL_get_privatekey(connection.get()), nullptr);
    };
    const Key other = make_key();
    const std::string renewed = certificate_of(other.get(), -kDay, 50 * kDay);
    file("c", renewed);
    EXPECT_THROW(identity.reload(), Error) << "the key is still that of before";
    expect_loaded(certificate_);
    EXPECT_EQ(identity.summary(), before);
    file("k", text_of(other.get()));
    identity.reload();
    expect_loaded(renewed);
    EXPECT_NE(identity.summary(), before);
}

// A connection to the server; what is read from it until its end.
class Client {
  public:
    explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        const timeval most{60, 0};
        setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    }
    ~Client() { close(socket_); }
    void send(std::string_view text) const {
        EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    }
    // False: the connection is still there after a minute.
    bool ends() const {
        std::array<char, 4096> part;
        ssize_t bytes;
        while ((bytes = recv(socket_, part.data(), part.size(), 0)) > 0)
            ;
        return bytes == 0 || errno == ECONNRESET;
    }

  private:
    const int socket_;
};

TEST_F(Tls, AHandshakeHasTheTimeOfAHeader) {
    ServerSettings settings;
    settings.port = 0;
    settings.tls_certificate = file("c", certificate_);
    settings.tls_key = file("k", text_of(key_.get()));
    settings.header_time = std::chrono::seconds(1);
    ModelHost host;
    const Server server(settings, host, "none", [](std::string_view) {});
    const auto begin = std::chrono::steady_clock::now();
    const Client silent(server.port()), one(server.port()), half(server.port());
    // A record's type alone, and a record of which most is missing.
    one.send("\x16");
    half.send(std::string_view("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9));
    EXPECT_TRUE(one.ends());
    EXPECT_TRUE(half.ends());
    const auto time = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(time, std::chrono::milliseconds(900));
    EXPECT_LT(time, std::chrono::seconds(30));
}

}  // namespace
}  // namespace tessera::server
