#include "tests/fuzz/model_target.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    tessera::fuzz::run_model({reinterpret_cast<const char*>(data), size});
    return 0;
}
