// What the bundled model was trained to answer, as the file beside it says.
#pragma once

#include <string>
#include <vector>

namespace tessera::app {

struct BundledKnowledge {
    std::string summary;                 // in the model's own words; empty if the file says nothing
    std::vector<std::string> questions;  // an example of each form
};

// Nothing if there is no such file, or one that cannot be read.
BundledKnowledge bundled_knowledge();

}  // namespace tessera::app
