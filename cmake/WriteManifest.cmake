# Fills a manifest's template: cmake -D TEMPLATE=... -D LIBRARY=... -D MANIFEST=... -D LIST_OPS=... -P WriteManifest.cmake
# @LIBRARY@ is the name of the library's file, @SHA256@ its hash, @OPS@ the ops of its table, which LIST_OPS (the program tessera-list-ops)
# asks it for.
# An install includes this file once for each plugin, in one process and without a policy for CMP0053, so that "@OPS@" in an if() would be
# replaced by the ops of the plugin before.
cmake_policy(VERSION 3.25)
set(OPS "")
file(READ "${TEMPLATE}" text)
string(FIND "${text}" "@OPS@" place)
if(NOT place EQUAL -1)
    if(NOT LIST_OPS)
        message(FATAL_ERROR "${TEMPLATE}: @OPS@ needs -D LIST_OPS=<tessera-list-ops>; tessera_manifest_command() gives it")
    endif()
    execute_process(COMMAND "${LIST_OPS}" "${LIBRARY}" OUTPUT_VARIABLE OPS ERROR_VARIABLE said RESULT_VARIABLE status
        OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${LIBRARY} does not say which ops it has, for @OPS@ of ${TEMPLATE}: ${status} ${said}\n"
            "Where this machine cannot map the library, write the list of ops instead of @OPS@.")
    endif()
endif()
file(SHA256 "${LIBRARY}" SHA256)
get_filename_component(LIBRARY "${LIBRARY}" NAME)
# Readable by all and writable by the owner only, whatever the template's mode is: a file that others can write is refused.
configure_file("${TEMPLATE}" "${MANIFEST}" @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
