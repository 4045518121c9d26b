#include <stdexcept>

extern "C" void throw_here() {
    throw std::runtime_error("thrown on purpose");
}
