// A store of an engine's pages.
#pragma once

#include "core/session/engine.hpp"
#include "core/session/kept/page_store.hpp"
#include "tests/temporary_folder.hpp"

#include <memory>
#include <string>
#include <vector>

namespace tessera::test {

inline std::shared_ptr<session::PageStore> page_store(const Engine& engine, const TemporaryFolder& folder,
                                                      const std::string& version = "1") {
    std::vector<std::string> notes;
    return std::make_shared<session::PageStore>(folder.path(), uint64_t{1} << 30,
                                                session::identity_of(engine, {}, version), engine.page_bytes(), notes);
}

}  // namespace tessera::test
