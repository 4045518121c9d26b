// Cases of the shapes that a user names, such as those of a model, instead of the small ones that are always the same.
#pragma once

#include "case.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::conformance {

// "matmul:q4_0:2048x512": an op, the types of its weights (one for all, or one each), and sizes: shape_signatures() has
// them.
struct Shape {
    std::string op;
    std::vector<tsr_type> types;
    std::vector<int64_t> sizes;

    std::string text() const;
};

// What can be named, a line each, for help and errors.
std::string_view shape_signatures();

// Whether shapes of an op can be named.
bool has_shapes(std::string_view op);

// Throws std::invalid_argument that says what is wrong with the text: its signature, an unknown type, rows that are not
// whole blocks, more than 2^31 elements.
Shape parse_shape(std::string_view text);

// Calls `use` with the cases of an op: each shape with few and some rows. In the order of the shapes.
void for_each_shape_case(const std::string& op, std::span<const Shape> shapes, const std::function<void(Case&)>& use);

}  // namespace tessera::conformance
