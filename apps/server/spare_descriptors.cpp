#include "apps/server/spare_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace tessera::server {

SpareDescriptors::~SpareDescriptors() {
    for (const int descriptor : held_) close(descriptor);
}

void SpareDescriptors::fill() {
    while (held_.size() < count_) {
        const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (descriptor < 0) return;
        held_.push_back(descriptor);
    }
}

bool SpareDescriptors::free_one() {
    if (held_.empty()) return false;
    close(held_.back());
    held_.pop_back();
    return true;
}

}  // namespace tessera::server
