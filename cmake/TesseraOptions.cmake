# Flags that every target of the project shares, as the interface library tessera_options.
add_library(tessera_options INTERFACE)
target_compile_options(tessera_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers)
# GCC 12 sees overlapping copies in std::string's operator+ where there are none (GCC bug 105651).
target_compile_options(tessera_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_include_directories(tessera_options INTERFACE "${CMAKE_SOURCE_DIR}")
if(TSR_SANITIZE)
    add_compile_options(-fsanitize=${TSR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${TSR_SANITIZE})
endif()

# tessera_plugin(NAME SOURCES ... [LIBRARIES ...] [FLAGS ...]): a plugin library with hidden symbols in the build's plugin
# folder, beside its manifest, which is made from NAME.toml.in of the calling folder with the library's SHA-256 filled in.
function(tessera_plugin name)
    cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES;FLAGS" ${ARGN})
    add_library(tessera_plugin_${name} MODULE ${arg_SOURCES})
    target_link_libraries(tessera_plugin_${name} PRIVATE tessera_options tessera_sdk ${arg_LIBRARIES})
    target_compile_options(tessera_plugin_${name} PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden -fno-gnu-unique ${arg_FLAGS})
    set_target_properties(tessera_plugin_${name} PROPERTIES PREFIX "" OUTPUT_NAME "tessera_${name}"
        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}")
    set(manifest "${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}/tessera_${name}.toml")
    add_custom_command(TARGET tessera_plugin_${name} POST_BUILD
        COMMAND ${CMAKE_COMMAND} -D TEMPLATE=${CMAKE_CURRENT_SOURCE_DIR}/${name}.toml.in -D LIBRARY=$<TARGET_FILE:tessera_plugin_${name}>
                -D MANIFEST=${manifest} -P ${CMAKE_SOURCE_DIR}/cmake/WriteManifest.cmake
        VERBATIM)
    install(TARGETS tessera_plugin_${name} LIBRARY DESTINATION ${TSR_PLUGIN_FOLDER})
    install(FILES ${manifest} DESTINATION ${TSR_PLUGIN_FOLDER})
endfunction()
