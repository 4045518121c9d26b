#include "apps/tessera/text_input.hpp"

#include "core/base/file.hpp"

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
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

}  // namespace tessera::app
