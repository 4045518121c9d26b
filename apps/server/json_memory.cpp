#include "apps/server/json_memory.hpp"

#include "apps/server/api_error.hpp"

#include <spdlog/fmt/fmt.h>

#include <new>
#include <utility>

namespace tessera::server {
namespace {

thread_local ByteBudget* current = nullptr;

}  // namespace

JsonMemory::Scope::Scope(ByteBudget* budget) : before_(std::exchange(current, budget)) {}

JsonMemory::Scope::~Scope() {
    current = before_;
}

boost::json::storage_ptr JsonMemory::storage() {
    if (!current) return {};
    return boost::json::make_shared_resource<JsonMemory>(*current);
}

void* JsonMemory::do_allocate(size_t bytes, size_t alignment) {
    if (!held_.add(bytes)) {
        throw ApiError(503,
                       fmt::format("the request's JSON takes more than the {} bytes that the server has for it "
                                   "(--held-limit); a smaller one may work",
                                   held_.limit()),
                       {}, "overloaded");
    }
    return ::operator new(bytes, std::align_val_t(alignment));
}

void JsonMemory::do_deallocate(void* memory, size_t bytes, size_t alignment) {
    ::operator delete(memory, std::align_val_t(alignment));  // clang offers the sized one on demand alone
    held_.remove(bytes);
}

}  // namespace tessera::server
