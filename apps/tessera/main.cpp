#include "apps/tessera/start.hpp"

int main(int argc, char** argv) {
    return tessera::app::start_program(argc, argv);
}
