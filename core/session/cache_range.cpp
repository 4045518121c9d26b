#include "core/session/cache_range.hpp"

#include "core/graph/types.hpp"

#include <algorithm>

namespace tessera::session {

Error with_cache_advice(const Error& error, const PlanOptions& options) {
    const auto is_narrow = [](tsr_type type) { return type != TSR_TYPE_F32 && type != TSR_TYPE_BF16; };
    Notice notice = error.notice();
    const auto advice = std::ranges::find(notice.advice, AdviceCode::kCheckFile, &Advice::code);
    if (advice == notice.advice.end() || !(is_narrow(options.cache_type_k) || is_narrow(options.cache_type_v)))
        return error;
    const tsr_type type = is_narrow(options.cache_type_k) ? options.cache_type_k : options.cache_type_v;
    advice->value = type_info(type).name;
    return {error.code(), std::move(notice)};
}

}  // namespace tessera::session
