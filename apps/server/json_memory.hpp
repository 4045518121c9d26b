// What parsed JSON takes, which may be many times its text.
#pragma once

#include "apps/server/byte_budget.hpp"

#include <boost/json/memory_resource.hpp>
#include <boost/json/storage_ptr.hpp>

namespace tessera::server {

// Memory of one document, which counts in a budget. What would exceed it throws ApiError(503); so does every later
// allocation by this.
class JsonMemory final : public boost::json::memory_resource {
  public:
    // The budget of documents that this thread parses; null: they are not counted.
    class Scope {
      public:
        explicit Scope(ByteBudget* budget);
        ~Scope();
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

      private:
        ByteBudget* const before_;
    };

    // Of a document parsed by this thread.
    static boost::json::storage_ptr storage();

    explicit JsonMemory(ByteBudget& budget) : held_(budget) {}

  private:
    void* do_allocate(size_t bytes, size_t alignment) override;
    void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
    bool do_is_equal(const boost::json::memory_resource& other) const noexcept override { return this == &other; }

    HeldBytes held_;
};

}  // namespace tessera::server
