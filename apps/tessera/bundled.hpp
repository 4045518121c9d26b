// What the bundled model was trained to answer, from a file that is installed with it.
#pragma once

#include <string>
#include <vector>

namespace tessera::app {

struct BundledKnowledge {
    std::string summary;                 // one paragraph; empty if the file has none
    std::vector<std::string> questions;  // an example of each kind
};

// Nothing if there is no such file, or one that cannot be read.
BundledKnowledge bundled_knowledge();

}  // namespace tessera::app
