#include "tests/fuzz/jinja_target.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    tessera::fuzz::run_jinja({reinterpret_cast<const char*>(data), size});
    return 0;
}
