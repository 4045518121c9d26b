// Forms that answers keep to where that is possible.
#pragma once

#include "core/session/token_constraint.hpp"

#include <functional>
#include <memory>

namespace tessera::structure {

// What `make` makes, until it throws an Error: from there on any token is allowed. Forces no tokens: an answer that
// keeps to the form by itself stays what it would be without it. Never null.
std::unique_ptr<session::TokenConstraint> free_where_it_fails(
    const std::function<std::unique_ptr<session::TokenConstraint>()>& make);

}  // namespace tessera::structure
