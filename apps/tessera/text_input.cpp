#include "apps/tessera/text_input.hpp"

#include "core/base/error.hpp"
#include "core/base/file.hpp"

#include <iostream>
#include <iterator>
#include <span>

namespace tessera::app {
namespace {

constexpr uint64_t kLargestText = uint64_t{256} << 20;

}  // namespace

std::string read_text(const std::string& name) {
    std::string text;
    if (name == "-") {
        text.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else {
        const File file(name);
        if (file.size() > kLargestText)
            fail(TSR_DOES_NOT_FIT, "{}: a prompt of {} bytes; {} are possible", name, file.size(), kLargestText);
        text.resize(file.size());
        file.pread_exact(0, std::as_writable_bytes(std::span(text)));
    }
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

}  // namespace tessera::app
