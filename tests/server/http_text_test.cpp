#include "apps/server/http_text.hpp"

#include <gtest/gtest.h>

namespace tessera::server {
namespace {

TEST(HttpText, WholeAnswersSayTheirLength) {
    const std::string head = response_head({404, "text/plain", "gone", {{"Retry-After", "3"}}}, false);
    EXPECT_TRUE(head.starts_with("HTTP/1.1 404 Not Found\r\n"));
    EXPECT_NE(head.find("Content-Length: 4\r\n"), std::string::npos);
    EXPECT_NE(head.find("Retry-After: 3\r\n"), std::string::npos);
    EXPECT_NE(head.find("Connection: close\r\n"), std::string::npos);
    EXPECT_TRUE(head.ends_with("\r\n\r\n"));
    EXPECT_EQ(response_head({204, "text/plain", "", {}}, true).find("Content-Length"), std::string::npos);
}

TEST(HttpText, PercentsAreDecoded) {
    EXPECT_EQ(percent_decoded("a%2Fb%20c%c3%A9"), "a/b c\u00e9");
    EXPECT_EQ(percent_decoded("%%4x%4%-1%"), "%%4x%4%-1%");
}

TEST(HttpText, StreamsAreInChunks) {
    EXPECT_NE(stream_head("text/event-stream", {{"Vary", "Origin"}}, true, true).find("Transfer-Encoding: chunked"),
              std::string::npos);
    EXPECT_EQ(stream_head("text/event-stream", {}, true, false).find("Transfer-Encoding"), std::string::npos);
    EXPECT_NE(stream_head("text/event-stream", {}, true, false).find("Connection: close"), std::string::npos);
    std::string out = "x";
    append_chunk(out, std::string(26, 'a'));
    EXPECT_EQ(out, "x1a\r\n" + std::string(26, 'a') + "\r\n");
}

TEST(HttpText, TargetsAreSplit) {
    std::string path, query;
    const auto split = [&](std::string_view target) {
        split_target(target, path, query);
        return path + "|" + query;
    };
    EXPECT_EQ(split("/a/b?c=d&e"), "/a/b|c=d&e");
    EXPECT_EQ(split("/a"), "/a|");
    EXPECT_EQ(split("http://host:80/a?b"), "/a|b");
    EXPECT_EQ(split("http://host"), "/|");
    EXPECT_EQ(split("/a?u=http://x/y"), "/a|u=http://x/y");
    EXPECT_EQ(split("*"), "*|");
    EXPECT_EQ(split(""), "|");
    EXPECT_EQ(split("http://host?a/b"), "/|a/b");
    EXPECT_EQ(split("a?u=http://x/y"), "a|u=http://x/y");
    EXPECT_EQ(split_target("http://host:80?a", path, query), "host:80");
    EXPECT_EQ(split_target("HTTPS://a@host/", path, query), "a@host");
    EXPECT_EQ(split_target("/http://host/", path, query), "");
}

TEST(HttpText, MediaTypesHaveParameters) {
    EXPECT_EQ(media_type("Application/JSON ; charset=x"), "application/json");
    EXPECT_EQ(media_type(""), "");
    EXPECT_EQ(media_parameter("application/json; v=1;Charset = \"UTF-8\" ", "charset"), "utf-8");
    EXPECT_EQ(media_parameter("application/json; charset", "charset"), "");
    EXPECT_EQ(media_parameter("application/json; xcharset=a", "charset"), "");
    EXPECT_EQ(media_parameter("charset=a", "charset"), "");
}

}  // namespace
}  // namespace tessera::server
