# The compiler of kernels, the host side and the plugins. What needs compiled kernels is tested where TSR_CUDA is ON.
tessera_test(cuda_images_test SOURCES images_test.cpp LIBRARIES tessera_cuda_kit ZLIB::ZLIB)

tessera_test(cuda_provider_test SOURCES provider_test.cpp card.cpp LIBRARIES tessera_cuda_kit)
if(TARGET tessera_emulated_cuda AND NOT TSR_SANITIZE)
    add_test(NAME cuda_provider_emulated COMMAND "${CMAKE_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}"
        --gpu 8.6:1GiB --gpu 6.1:1GiB -- "$<TARGET_FILE:cuda_provider_test>")
    add_test(NAME cuda_provider_lost COMMAND "${CMAKE_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}" --gpu 8.6:1GiB --gpu 6.1:1GiB
        --faults 0:lost@60 -- "$<TARGET_FILE:cuda_provider_test>" --gtest_filter=*ALostCard*)
    set_tests_properties(cuda_provider_lost PROPERTIES FAIL_REGULAR_EXPRESSION "SKIPPED")
    add_dependencies(cuda_provider_test tessera_emulated_cuda tessera_emulated_nvml)
endif()

if(TARGET tessera_cuda_ops)
    tessera_test(cuda_estimates_test SOURCES estimates_test.cpp $<TARGET_OBJECTS:tessera_cuda_ops> LIBRARIES tessera_cuda_kit tessera_cpu_kit)
endif()

set(toolkit "")
if(TSR_CUDA)
    set(toolkit "${TSR_CUDA_TOOLKIT}")
    if(NOT toolkit)
        set(toolkit "${CMAKE_SOURCE_DIR}/.cuda")
    endif()
endif()
tessera_test(cuda_compile_test SOURCES compile_test.cpp "${CMAKE_SOURCE_DIR}/tests/apps/process.cpp"
        "${CMAKE_SOURCE_DIR}/sdk/cuda/compiler/options.cpp" "${CMAKE_SOURCE_DIR}/sdk/cuda/compiler/overlap.cpp" LIBRARIES ZLIB::ZLIB
    FLAGS -DTSR_CUDA_COMPILE="$<TARGET_FILE:tessera_cuda_compile>" -DTSR_TOOLKIT="${toolkit}" -DTSR_PROGRAM="$<TARGET_FILE:tessera>")
add_dependencies(cuda_compile_test tessera_cuda_compile)

# What nvidia-smi says of the cards here, and the toolkit that is named, is taken.
add_test(NAME cuda_archs COMMAND "${CMAKE_COMMAND}" -D "SOURCE=${CMAKE_SOURCE_DIR}" -D "WORK=${CMAKE_CURRENT_BINARY_DIR}/archs"
    -P "${CMAKE_CURRENT_SOURCE_DIR}/archs_test.cmake")

set(compiler "")
if(TSR_CUDA)
    set(compiler "$<TARGET_FILE:tessera_cuda_compile>" "${toolkit}")
endif()
add_test(NAME cuda_static_gate COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/static_gate_test.py" "${CMAKE_SOURCE_DIR}" ${compiler})

# What gpu_acceptance makes of made-up measurements.
add_test(NAME gpu_acceptance_verdicts COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/acceptance_test.py" "${CMAKE_SOURCE_DIR}")

if(TSR_CUDA)
    # No kernel may spill registers, or have worse figures than those of testing/cuda_code/cuda_bounds.toml.
    add_test(NAME cuda_static COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_SOURCE_DIR}/testing/cuda_code/cuda_static" "${CMAKE_BINARY_DIR}" --check)

    # 60 MB a plugin, for all architectures.
    set(sizes "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/plugin_sizes_test.py" "${CMAKE_BINARY_DIR}")
    add_test(NAME cuda_plugin_sizes COMMAND ${sizes})
    add_test(NAME cuda_plugin_sizes_exceeded COMMAND ${sizes} --most 1000000)
    set_tests_properties(cuda_plugin_sizes_exceeded PROPERTIES PASS_REGULAR_EXPRESSION "MB for [^\n]*\nexpected at most 1.0 MB")

    # A card that is newer than the build runs PTX: of all modules of a plugin, since plans take it for granted that what one of them has the
    # others have.
    add_test(NAME cuda_ptx COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/ptx_test.sh" "${CMAKE_BINARY_DIR}/plugins")

    # Wrappers once for each plugin: a card can have code that was made from either of two virtual architectures.
    set(wrapper_tests "")
    foreach(name legacy ampere)
        if(name STREQUAL "legacy")
            tessera_cuda_archs_from(archs 60 79)
        else()
            tessera_cuda_archs_from(archs 80 999)
        endif()
        if(archs)
            set(test cuda_wrappers_${name}_test)
            add_executable(${test} wrappers_test.cpp card.cpp)
            target_link_libraries(${test} PRIVATE tessera_options tessera_cuda_kit tessera_formats GTest::gtest GTest::gtest_main)
            target_compile_definitions(${test} PRIVATE TSR_WRAPPERS=tessera_cuda_module_${test}__wrappers)
            tessera_cuda_module(${test} wrappers SOURCES wrappers.cu ARCHS ${archs})
            list(APPEND wrapper_tests ${test})
        endif()
    endforeach()
    # The kernel that joins spans, of both plugins' virtual architectures.
    tessera_cuda_archs(archs)
    list(FILTER archs EXCLUDE REGEX "@")  # one image for an architecture
    add_executable(cuda_combine_test combine_test.cpp card.cpp)
    target_link_libraries(cuda_combine_test PRIVATE tessera_options tessera_cuda_kit tessera_formats GTest::gtest GTest::gtest_main)
    target_include_directories(cuda_combine_test PRIVATE "${PROJECT_SOURCE_DIR}")
    tessera_cuda_module(cuda_combine_test attention SOURCES "${PROJECT_SOURCE_DIR}/kernels/cuda/attention/attention.cu" ARCHS ${archs})
    # What a card does with the kernels of a plugin.
    add_executable(measure_card measure/main.cpp measure/bench.cpp measure/described.cpp measure/rates.cpp measure/latencies.cpp measure/products.cpp measure/experts.cpp
        measure/attention.cpp card.cpp)
    target_include_directories(measure_card PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(measure_card PRIVATE tessera_options tessera_cuda_kit tessera_formats tessera_hardware Boost::json)
    foreach(name legacy ampere)
        if(name STREQUAL "legacy")
            tessera_cuda_archs_from(archs 60 79)
        else()
            tessera_cuda_archs_from(archs 80 999)
        endif()
        if(archs)
            string(TOUPPER ${name} upper)
            target_compile_definitions(measure_card PRIVATE TSR_RATES_${upper})
            tessera_cuda_module(measure_card rates_${name} SOURCES measure/rates.cu ARCHS ${archs})
        endif()
    endforeach()
    # For authors too; not in builds of a few targets.
    install(TARGETS measure_card RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT sdk OPTIONAL)
    cmake_path(GET TSR_PLUGIN_FOLDER PARENT_PATH beside)
    foreach(rates legacy_60 legacy_61 ampere_80)
        set(target "tessera_emulated_measure_card__rates_${rates}")
        if(TARGET ${target})
            install(TARGETS ${target} LIBRARY DESTINATION "${beside}/emulated" COMPONENT sdk OPTIONAL)
        endif()
    endforeach()
    # Memory that the drivers count, planned and after many steps.
    add_executable(measure_steps measure/steps.cpp)
    target_link_libraries(measure_steps PRIVATE tessera_options tessera_setup Boost::json)
    add_custom_target(tessera_gpu_acceptance DEPENDS tessera tessera_plugins measure_card measure_steps expand_goldens ${wrapper_tests})

    if(TARGET tessera_emulated_cuda AND NOT TSR_SANITIZE)
        # emulated_test(NAME CARDS... COMMAND ...): on emulated cards, streams in random order, kernels from their sources. The plugins' own are
        # tested from PTX (ptx.cmake).
        function(emulated_test name)
            cmake_parse_arguments(arg "" "" "CARDS;COMMAND" ${ARGN})
            list(TRANSFORM arg_CARDS REPLACE "(.+)" "--gpu;\\1")
            add_test(NAME ${name} COMMAND "${CMAKE_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}" ${arg_CARDS} --
                ${arg_COMMAND})
            set_tests_properties(${name} PROPERTIES TIMEOUT 1500 LABELS slow)
        endfunction()
        set(folder "${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}")
        # From the file that is carried to a machine with a card. It and what is unpacked stay until the next run of the test that makes it.
        set(carried "${CMAKE_CURRENT_BINARY_DIR}/gpu-acceptance")
        set(acceptance "${TSR_TEST_PYTHON}" "${CMAKE_SOURCE_DIR}/tools/gpu_acceptance" run "${carried}/gpu.tar.xz" --output)
        tessera_cuda_archs(archs)
        if("61" IN_LIST archs)
            emulated_test(cuda_wrappers_legacy CARDS 6.1:1GiB COMMAND "$<TARGET_FILE:cuda_wrappers_legacy_test>")
        endif()
        if("80" IN_LIST archs)
            emulated_test(cuda_wrappers_ampere CARDS 8.6:1GiB 8.0:1GiB COMMAND "$<TARGET_FILE:cuda_wrappers_ampere_test>")
        endif()
        if("61" IN_LIST archs AND "80" IN_LIST archs)
            emulated_test(cuda_combine CARDS 8.6:1GiB 6.1:1GiB COMMAND "$<TARGET_FILE:cuda_combine_test>")
            # The template's one module has one image for an architecture.
            list(FILTER archs EXCLUDE REGEX "@")
            string(REPLACE ";" "," comma_archs "${archs}")
            add_test(NAME cuda_template COMMAND "${CMAKE_COMMAND}" -D "BUILD=${CMAKE_BINARY_DIR}" -D "WORK=${CMAKE_CURRENT_BINARY_DIR}/template"
                -D "TOOLKIT=${toolkit}" -D "ARCHS=${comma_archs}" -D "GENERATOR=${CMAKE_GENERATOR}" -D "COMPILER=${CMAKE_CXX_COMPILER}"
                -D "PROGRAM=$<TARGET_FILE:tessera>" -D "PLUGINS=${folder}" -D "PYTHON=${TSR_TEST_PYTHON}" -P "${CMAKE_CURRENT_SOURCE_DIR}/check_template.cmake")
            set_tests_properties(cuda_template PROPERTIES TIMEOUT 600 LABELS slow)
            # What is measured on a card has its full size there: that the plans are asked right is tried here.
            emulated_test(measure_card_plans CARDS 8.6:24GiB COMMAND "$<TARGET_FILE:measure_card>" "${folder}/tessera_cuda_ampere.so" --plan)
            # The script for machines with a card.
            add_test(NAME gpu_acceptance_folder COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/acceptance_folder_test.py"
                "${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}" "${carried}")
            set_tests_properties(gpu_acceptance_folder PROPERTIES FIXTURES_SETUP gpu_acceptance_folder ENVIRONMENT "TMPDIR=${carried}")
            emulated_test(gpu_acceptance CARDS 8.6:2GiB 6.1:2GiB
                COMMAND ${acceptance} "${CMAKE_CURRENT_BINARY_DIR}/gpu-acceptance.md" --small)
            # Each command loses the card: each fails by itself, and says so.
            add_test(NAME gpu_acceptance_fails COMMAND "${CMAKE_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}" --gpu 8.6:2GiB
                --faults 0:lost@60 -- ${acceptance} "${CMAKE_CURRENT_BINARY_DIR}/gpu_acceptance_fails.md" --small --only wrappers,answers)
            set_tests_properties(gpu_acceptance_fails PROPERTIES TIMEOUT 300
                PASS_REGULAR_EXPRESSION "FAILED: wrappers: cuda_ampere. answers of cuda_ampere: Count from 1 to 10 in French")
            set_tests_properties(gpu_acceptance gpu_acceptance_fails PROPERTIES FIXTURES_REQUIRED gpu_acceptance_folder ENVIRONMENT "TMPDIR=${carried}")
        endif()
    endif()
endif()
