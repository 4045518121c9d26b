# Flags that every target of the project shares, as the interface library tessera_options.
add_library(tessera_options INTERFACE)
target_compile_options(tessera_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers)
# GCC 12 sees overlapping copies in std::string's operator+ where there are none (GCC bug 105651).
target_compile_options(tessera_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_include_directories(tessera_options INTERFACE "${CMAKE_SOURCE_DIR}")
# So that ccache can tell what a precompiled header stood for.
target_compile_options(tessera_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
# Of code that takes no time worth speaking of when it runs: a fifth less to compile.
set(TSR_RUNS_SELDOM $<$<CONFIG:Release>:-O1>)
if(TSR_SANITIZE)
    add_compile_options(-fsanitize=${TSR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${TSR_SANITIZE})
    # To check the type of an object this opens a pipe, and where that fails it takes the object for a bad one: a server
    # that may open no more files, as one is tested, would end.
    if(TSR_SANITIZE MATCHES undefined)
        add_compile_options(-fno-sanitize=vptr)
    endif()
endif()
