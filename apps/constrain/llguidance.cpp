#include "apps/constrain/llguidance.hpp"

#include "core/base/error.hpp"

#include <dlfcn.h>

namespace tessera::constrain {
namespace {

constexpr std::string_view kVersion = "1.9.1";

}  // namespace

Llguidance::Llguidance(const std::string& path) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(TSR_NOT_FOUND, "cannot load llguidance: {}", dlerror());
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        if (!function) fail(TSR_UNSUPPORTED, "{}: has no function {}", path, name);
    };
    find(get_version, "llg_get_version");
    const std::string_view version = get_version();
    if (version.find(kVersion) == std::string_view::npos)
        fail(TSR_UNSUPPORTED, "{}: is version {}, expected {}", path, version, kVersion);
    find(new_tokenizer, "llg_new_tokenizer_v2");
    find(set_defaults, "llg_constraint_init_set_defaults");
    find(new_matcher, "llg_new_matcher");
    find(get_error, "llg_matcher_get_error");
    find(compute_mask, "llg_matcher_compute_mask_into");
    find(mask_bytes, "llg_matcher_get_mask_byte_size");
    find(consume_tokens, "llg_matcher_consume_tokens");
    find(rollback, "llg_matcher_rollback");
}

}  // namespace tessera::constrain
