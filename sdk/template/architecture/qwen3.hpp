#pragma once

#include <tessera/extensions/architecture.h>

namespace example {

extern const tsr_architecture kQwen3;

}  // namespace example
