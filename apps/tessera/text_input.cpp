#include "apps/tessera/text_input.hpp"

#include "core/base/byte_order_mark.hpp"
#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/text.hpp"

#include <iostream>
#include <iterator>

namespace tessera::app {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{256} << 20;

}  // namespace

std::string read_text(const std::string& name) {
    std::string text;
    if (name == "-") {
        text.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else {
        text = read_all(name, kMaxTextBytes);  // also of a pipe, as "<(command)" names one
    }
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
        fail(TSR_INVALID_ARGUMENT, "{}: expected text in UTF-8, found UTF-16: save it as UTF-8",
             name == "-" ? "standard input" : printable(name, 4096));
    }
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

}  // namespace tessera::app
