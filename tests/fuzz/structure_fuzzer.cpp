#include "tests/fuzz/structure_target.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    tessera::fuzz::run_structure({reinterpret_cast<const char*>(data), size});
    return 0;
}
