# tessera_plugin(NAME SOURCES ... [LIBRARIES ...] [FLAGS ...] [FOLDER FOLDER]): the plugin library tessera_NAME.so with hidden symbols, and
# beside it the manifest tessera_NAME.toml, made from NAME.toml.in of the calling folder with the library's name, its SHA-256 and
# the ops of its table filled in. FOLDER: below the build folder, of a plugin that no program finds and that is not installed.
# Shared by the main build and the installed SDK.
#
# tessera_manifest_command(VARIABLE TEMPLATE LIBRARY MANIFEST): the command that makes a manifest, for libraries that are built otherwise.
# It needs the program Tessera::list_ops.
if(NOT DEFINED TSR_PLUGIN_FOLDER)
    set(TSR_PLUGIN_FOLDER "lib/tessera/plugins") # below the build folder and below the prefix
endif()
set(TSR_WRITE_MANIFEST "${CMAKE_CURRENT_LIST_DIR}/WriteManifest.cmake")

function(tessera_manifest_command variable template library manifest)
    set(${variable} "${CMAKE_COMMAND}" -D "TEMPLATE=${template}" -D "LIBRARY=${library}" -D "MANIFEST=${manifest}"
        -D "LIST_OPS=$<TARGET_FILE:Tessera::list_ops>" -P "${TSR_WRITE_MANIFEST}" PARENT_SCOPE)
endfunction()

function(tessera_plugin name)
    cmake_parse_arguments(arg "" "FOLDER" "SOURCES;LIBRARIES;FLAGS" ${ARGN})
    set(target tessera_plugin_${name})
    set(template "${CMAKE_CURRENT_SOURCE_DIR}/${name}.toml.in")
    set(folder "${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}")
    if(arg_FOLDER)
        set(folder "${CMAKE_BINARY_DIR}/${arg_FOLDER}")
    endif()
    add_library(${target} MODULE ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE Tessera::sdk ${arg_LIBRARIES})
    if(TARGET tessera_options)
        target_link_libraries(${target} PRIVATE tessera_options)
    endif()
    # Two plugins must not find each other's symbols, and unique ones would pin a library even where nobody uses it. A function of
    # another signature in a table is only a warning in C, and a crash when it is called.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:-Werror=incompatible-pointer-types> -fvisibility=hidden $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>
        $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden> ${arg_FLAGS})
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME "tessera_${name}" POSITION_INDEPENDENT_CODE ON
        LIBRARY_OUTPUT_DIRECTORY "${folder}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${template}")
    tessera_manifest_command(command "${template}" "$<TARGET_FILE:${target}>" "${folder}/tessera_${name}.toml")
    add_custom_command(TARGET ${target} POST_BUILD COMMAND ${command} VERBATIM)
    add_dependencies(${target} Tessera::list_ops)
    if(arg_FOLDER)
        return()
    endif()
    # The manifest is made again from the installed library: stripping and paths to libraries change its hash. Plugins that are not built
    # (tools/start builds those of this processor) are left out.
    install(TARGETS ${target} LIBRARY DESTINATION "${TSR_PLUGIN_FOLDER}" COMPONENT plugins OPTIONAL)
    install(CODE "
        if(EXISTS \"$<TARGET_FILE:${target}>\")
        set(TEMPLATE \"${template}\")
        set(LIST_OPS \"$<TARGET_FILE:Tessera::list_ops>\")
        set(LIBRARY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${TSR_PLUGIN_FOLDER}/tessera_${name}.so\")
        set(MANIFEST \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${TSR_PLUGIN_FOLDER}/tessera_${name}.toml\")
        message(STATUS \"Installing: \${MANIFEST}\")
        include(\"${TSR_WRITE_MANIFEST}\")
        else()
        message(STATUS \"Not built, so not installed: plugin tessera_${name}\")
        endif()" COMPONENT plugins)
endfunction()
