// The block formats, under the kit's own namespace.
#pragma once

#include <tessera/formats/formats.hpp>

namespace tessera::cpu {

using namespace formats;

}  // namespace tessera::cpu
