#include "tests/fuzz/page_target.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    tessera::fuzz::run_page(std::as_bytes(std::span(data, size)));
    return 0;
}
