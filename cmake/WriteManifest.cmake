# Fills @SHA256@ and @LIBRARY@ of a manifest template: cmake -D TEMPLATE=... -D LIBRARY=... -D MANIFEST=... -P WriteManifest.cmake
file(SHA256 "${LIBRARY}" SHA256)
get_filename_component(LIBRARY "${LIBRARY}" NAME)
configure_file("${TEMPLATE}" "${MANIFEST}" @ONLY)
