// The formats compile as NVRTC sees them: without any system header, with only what NVRTC has built in.
using size_t = decltype(sizeof 0);
extern "C" void* memcpy(void* to, const void* from, size_t bytes) noexcept;
extern "C" float fabsf(float x) noexcept;
extern "C" float roundf(float x) noexcept;

#include <tessera/formats/codes.hpp>
#include <tessera/formats/formats.hpp>
#include <tessera/formats/interleaved.hpp>

namespace tessera::formats {

void decode(tsr_type type, const char* from, size_t count, float* to) {
    decode_row(type, from, count, to);
}

void encode(tsr_type type, const float* from, size_t count, char* to) {
    encode_row(type, from, count, to);
}

}  // namespace tessera::formats
