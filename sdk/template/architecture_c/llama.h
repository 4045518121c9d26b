#ifndef EXAMPLE_LLAMA_H
#define EXAMPLE_LLAMA_H

#include <tessera/extensions/architecture.h>

extern const tsr_architecture example_llama;

#endif
