// Rows of any format, of random bits under scales that give weights of a wanted size.
#pragma once

#include "testing/conformance/random_rows.hpp"

#include <tessera/cpu/formats.hpp>

namespace tessera::tests {

using conformance::fill_rows;
using conformance::set_scales;
using conformance::weight_types;

}  // namespace tessera::tests
