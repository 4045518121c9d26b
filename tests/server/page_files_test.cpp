#include "apps/server/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tessera::server {
namespace {

const PageFile* find(std::string_view path) {
    const auto files = page_files();
    const auto at = std::ranges::find(files, path, &PageFile::path);
    return at == files.end() ? nullptr : &*at;
}

std::string header(const HttpResponse& response, std::string_view name) {
    for (const auto& [key, value] : response.headers) {
        if (key == name) return value;
    }
    return "missing";
}

TEST(PageFiles, AreTheFilesOfTheSource) {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TSR_SOURCE_DIR "/apps/server/page")) {
        std::ifstream stream(entry.path(), std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
        const std::string name = entry.path().filename();
        const PageFile* const file = find(name == "index.html" ? "/" : "/" + name);
        ASSERT_TRUE(file) << name;
        EXPECT_TRUE(file->body == bytes) << name;
        ++count;
    }
    ASSERT_TRUE(find("/openapi.yaml"));
    EXPECT_TRUE(find("/openapi.yaml")->body.starts_with("openapi: "));
    EXPECT_EQ(page_files().size(), count + 1);
    EXPECT_EQ(find("/")->type, "text/html; charset=utf-8");
    EXPECT_EQ(find("/app.js")->type, "text/javascript; charset=utf-8");
    EXPECT_EQ(find("/style.css")->type, "text/css; charset=utf-8");
}

// Else a browser asks for one module after another.
TEST(PageFiles, AllModulesAreAskedForAtOnce) {
    const std::string_view index = find("/")->body;
    for (const PageFile& file : page_files()) {
        if (!file.path.ends_with(".js")) continue;
        EXPECT_NE(index.find(std::string("\"").append(file.path.substr(1)).append("\"")), std::string_view::npos)
            << file.path;
    }
}

TEST(PageFiles, HeadersKeepThePageToItself) {
    for (const PageFile& file : page_files()) {
        const HttpResponse response = page_response(file, {});
        EXPECT_EQ(response.status, 200u);
        EXPECT_EQ(response.body, file.body);
        EXPECT_EQ(header(response, "Content-Security-Policy"),
                  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
                  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
        EXPECT_EQ(header(response, "X-Frame-Options"), "DENY");
        EXPECT_EQ(header(response, "Referrer-Policy"), "no-referrer");
        EXPECT_EQ(header(response, "ETag"), file.etag);
    }
}

TEST(PageFiles, AreNotSentAgain) {
    const PageFile& file = *find("/app.js");
    const std::string etag(file.etag);
    for (const auto& [tags, status] :
         std::vector<std::pair<std::string, unsigned>>{{etag, 304},
                                                       {"W/" + etag, 304},
                                                       {"\"a\" ,\t" + etag + " , \"b\"", 304},
                                                       {"*", 304},
                                                       {"\"a\"", 200},
                                                       {"", 200},
                                                       {etag.substr(1), 200},
                                                       {std::string(find("/")->etag), 200}}) {
        HttpRequest request;
        request.headers = {{"if-none-match", tags}};
        const HttpResponse response = page_response(file, request);
        EXPECT_EQ(response.status, status) << tags;
        EXPECT_EQ(response.body.empty(), status == 304) << tags;
        EXPECT_EQ(header(response, "ETag"), etag);
        EXPECT_NE(header(response, "Content-Security-Policy"), "missing");
    }
}

// Nothing is made from text as markup, and no address is absolute: the page works below any prefix.
TEST(PageFiles, NothingMakesMarkupOfText) {
    for (const PageFile& file : page_files()) {
        for (const char* never : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                                  "new Function", "DOMParser", "createContextualFragment", "srcdoc"})
            EXPECT_EQ(file.body.find(never), std::string_view::npos) << file.path << " has " << never;
        for (const char* absolute : {"src=\"/", "href=\"/", "fetch(\"/", "from \"/", "url("})
            EXPECT_EQ(file.body.find(absolute), std::string_view::npos) << file.path << " has " << absolute;
    }
}

}  // namespace
}  // namespace tessera::server
