#include "../kit.hpp"
#include "code.hpp"

namespace tessera::x86::attention {

template Budget make_budget<Int16Operands<8>>(const Problem&, int, int64_t, int64_t&) noexcept;
template Budget make_budget<Int16Operands<16>>(const Problem&, int, int64_t, int64_t&) noexcept;
template Budget make_budget<ByteOperands<8>>(const Problem&, int, int64_t, int64_t&) noexcept;
template Budget make_budget<ByteOperands<16>>(const Problem&, int, int64_t, int64_t&) noexcept;
template Budget make_budget<FloatOperands<8>>(const Problem&, int, int64_t, int64_t&) noexcept;
template Budget make_budget<FloatOperands<16>>(const Problem&, int, int64_t, int64_t&) noexcept;

}  // namespace tessera::x86::attention
