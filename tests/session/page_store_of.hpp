// A store of an engine's pages.
#pragma once

#include "core/session/kept/page_identity.hpp"
#include "core/session/kept/page_store.hpp"
#include "tests/support.hpp"
#include "tests/temporary_folder.hpp"

#include <memory>
#include <string>
#include <vector>

namespace tessera::test {

inline std::shared_ptr<session::PageStore> page_store(const LoadedModel& model, const TemporaryFolder& folder) {
    std::vector<std::string> notes;
    return std::make_shared<session::PageStore>(folder.path(), uint64_t{1} << 30,
                                                session::identity_of(*model.engine, *model.registry, {}, "1"),
                                                model.engine->page_bytes(), notes);
}

}  // namespace tessera::test
