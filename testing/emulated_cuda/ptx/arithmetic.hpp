// Opcodes that integers and floating-point numbers share: these translate the latter.
#pragma once

#include "translate.hpp"

namespace tessera::cuda::ptx {

enum class FloatOperation : uint8_t {
    kAdd,
    kSubtract,
    kMultiply,
    kFma,
    kMinimum,
    kMaximum,
    kNegate,
    kAbsolute,
    kDivide
};

// Behind the opcode's first word.
void translate_float(Coder& coder, FloatOperation operation);
void translate_half(Coder& coder, FloatOperation operation);  // f16, bf16 and pairs of them

}  // namespace tessera::cuda::ptx
