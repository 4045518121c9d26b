// Which tools a request to /v1/messages offers: its list, and what its messages change about it.
#pragma once

#include "apps/server/conversation.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tessera::server::anthropic {

// Of one request, one thread. Messages are read first, then the list. All throw ApiError(400).
class OfferedTools {
  public:
    // A block tool_reference of a tool's result, which says that a tool was found: it is described from now on. Returns
    // its name.
    std::string add_found(const boost::json::object& block, const std::string& path);
    // A block tool_addition or tool_removal of a system message.
    void add_change(const boost::json::object& block, const std::string& path);
    // The tools that the model is told of: those of the field tools that are not deferred, then, in their order, those
    // that messages add, so that what stands before them in the prompt stays cached.
    std::vector<text::ChatTool> read(const Fields& fields) const;

  private:
    struct Change {
        bool offered = true;
        std::string name;
        std::string path;
        std::optional<text::ChatTool> definition = {};
    };
    void add(Change change);

    std::vector<Change> changes_;
};

}  // namespace tessera::server::anthropic
