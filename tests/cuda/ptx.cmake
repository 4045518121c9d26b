# The executor of PTX: what it does with kernels that are written in PTX, and with those that the build has compiled. Label "ptx".
if(NOT TSR_CUDA_EMULATOR)
    return()
endif()
tessera_test(cuda_ptx_test SOURCES ptx/faults_test.cpp ptx/instructions_test.cpp ptx/refusals_test.cpp LIBRARIES tessera_cuda_ptx_tested LABELS ptx)
if(NOT TSR_CUDA)
    return()
endif()
tessera_cuda_archs(archs)
# Every instruction of both plugins is known. Tests may have further modules.
get_property(statistics GLOBAL PROPERTY TSR_CUDA_STATISTICS)
list(FILTER statistics INCLUDE REGEX "/cuda_(legacy|ampere)__[^/]*$")
list(LENGTH statistics modules)
tessera_test(cuda_ptx_modules_test SOURCES ptx/modules_test.cpp LIBRARIES tessera_cuda_ptx_tested LABELS ptx
    FLAGS -DTSR_EMULATED_DIR="${TSR_CUDA_EMULATED_FOLDER}" -DTSR_LEAST_MODULES=${modules})
add_dependencies(cuda_ptx_modules_test tessera_plugins)
if(TSR_SANITIZE)
    return()
endif()

# ptx_test(NAME CARDS... COMMAND ...): run from PTX. What kernels did is put into a folder, a file for each process.
set(counters "${CMAKE_CURRENT_BINARY_DIR}/ptx-counters")
add_test(NAME cuda_ptx_counters_folder COMMAND sh -c "rm -rf '${counters}' && mkdir -p '${counters}'")
set_tests_properties(cuda_ptx_counters_folder PROPERTIES FIXTURES_SETUP ptx_counters LABELS ptx)
function(ptx_test name)
    cmake_parse_arguments(arg "" "" "CARDS;COMMAND" ${ARGN})
    list(TRANSFORM arg_CARDS REPLACE "(.+)" "--gpu;\\1")
    add_test(NAME cuda_ptx_${name} COMMAND "${CMAKE_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}" --kernels ptx
        --counters "${counters}" ${arg_CARDS} -- ${arg_COMMAND})
    set_tests_properties(cuda_ptx_${name} PROPERTIES TIMEOUT 1500 LABELS ptx FIXTURES_REQUIRED ptx_counters FIXTURES_SETUP ptx_runs)
endfunction()
set(folder "${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}")
# Ops of the plugin on the card, against the reference; fused ones, which it has not, against the CPU.
# The other card is the peer of copies.
function(ptx_plugin_test name plugin card)
    ptx_test(${name} CARDS ${card} ${card} COMMAND "$<TARGET_FILE:tessera>" plugin-test "${folder}/tessera_cuda_${plugin}.toml" --device CUDA0 --timeout 300 ${ARGN})
endfunction()
# The same, for tools/check --full alone: cards whose kernels differ little from those of 6.1 and 8.6.
function(ptx_full_plugin_test name)
    ptx_plugin_test(${name} ${ARGN})
    set_tests_properties(cuda_ptx_${name} PROPERTIES LABELS "ptx;full")
endfunction()
set(unfused --without tiled_attention --without matmul_group --without _ffn)
set(fused --kernel matmul_group --kernel _ffn --reference "${folder}/tessera_cpu_avx2.toml")
function(ptx_model_test name card)
    add_test(NAME cuda_ptx_run_${name} COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/run_on_cards_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus"
        "${CMAKE_BINARY_DIR}" "${card}" idle -p "Count from 1 to 10 in French." -n 20)
    set_tests_properties(cuda_ptx_run_${name} PROPERTIES TIMEOUT 600 LABELS ptx ENVIRONMENT "EMULATED_OPTIONS=--kernels ptx"
        FIXTURES_REQUIRED ptx_counters)
endfunction()
if("61" IN_LIST archs)
    ptx_test(wrappers_legacy CARDS 6.1:1GiB COMMAND "$<TARGET_FILE:cuda_wrappers_legacy_test>")
    ptx_model_test(pascal 6.1:24GiB)
    ptx_plugin_test(legacy legacy 6.1:2GiB ${unfused})
    # Flash and tiled attention are one code, but for what they claim: of 576/512 it is tiled attention alone here.
    ptx_plugin_test(legacy_tiled legacy 6.1:2GiB --kernel tiled_attention --case "prefix 576/512" --case "plain 64 cache f16"
        --case "projected 64 cache f16 weights f16")
    if(TARGET tessera_plugin_cpu_avx2)
        ptx_plugin_test(legacy_fused legacy 6.1:2GiB ${fused})
    endif()
endif()
# Plans of 7.5 are others than those of 6.1, the PTX is the same.
if("70" IN_LIST archs)
    ptx_full_plugin_test(legacy_turing legacy 7.5:2GiB --kernel matmul.cuda --kernel matmul_id --kernel flash_attention --case rows=150
        --case "rows=139 one" --case "plain 192/128 cache f16")
endif()
if("60" IN_LIST archs)
    ptx_full_plugin_test(legacy_p100 legacy 6.0:2GiB ${unfused} --without flash_attention)
    ptx_full_plugin_test(legacy_p100_flash legacy 6.0:2GiB --kernel attention --case "plain 64 cache" --case "plain 192/128 cache f16" --case "plain 128 cache"
        --case "prefix 576/512 cache f16" --case "prefix 576/512 cache q8_0" --case "projected 64 cache f16" --case hadamard --case prompts)
    # With three rows the CPU, which rounds activations, is further from this card in some cases than is allowed.
    if(TARGET tessera_plugin_cpu_avx2)
        ptx_full_plugin_test(legacy_p100_fused legacy 6.0:2GiB --kernel _ffn --case rows=1 --reference "${folder}/tessera_cpu_avx2.toml")
    endif()
endif()
if("80" IN_LIST archs)
    ptx_test(wrappers_ampere CARDS 8.6:1GiB COMMAND "$<TARGET_FILE:cuda_wrappers_ampere_test>")
    ptx_model_test(ampere 8.6:24GiB)
    ptx_plugin_test(ampere ampere 8.6:2GiB ${unfused})
    ptx_plugin_test(ampere_tiled ampere 8.6:2GiB --kernel tiled_attention --case prefix --case "plain 64 cache f16"
        --case "projected 64 cache f16 weights f16")
    # Cards with more shared memory, and other tensor cores than GeForce cards', have kernels of their own.
    ptx_plugin_test(ampere_wide ampere 8.0:2GiB --kernel flash_attention --kernel matmul.cuda --kernel matmul_id --case "plain 192/128"
        --case "plain 576/512" --case prefix --case signs --case rows=150 --case rows=139)
    # Multiprocessors with 228 KB of shared memory take two blocks of latent attention.
    ptx_plugin_test(ampere_hopper ampere 9.0:2GiB --kernel flash_attention --case "prefix 576/512 prompts")
    if(TARGET tessera_plugin_cpu_avx2)
        ptx_plugin_test(ampere_fused ampere 8.6:2GiB ${fused})
    endif()
    # Mistakes that are planted in the compiled text.
    add_test(NAME cuda_ptx_planted_faults COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/ptx/planted_faults_test.py"
        "${CMAKE_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}")
    set_tests_properties(cuda_ptx_planted_faults PROPERTIES TIMEOUT 600 LABELS ptx)
endif()
# All of these together have run every kernel of both plugins.
if("60" IN_LIST archs AND "61" IN_LIST archs AND "80" IN_LIST archs AND TARGET tessera_plugin_cpu_avx2)
    list(TRANSFORM statistics REPLACE ".*/(.+)\\.statistics" "\\1" OUTPUT_VARIABLE module_names)
    add_test(NAME cuda_ptx_every_kernel COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/ptx/every_kernel_test.py" "${CMAKE_BINARY_DIR}"
        "${counters}" ${module_names})
    set_tests_properties(cuda_ptx_every_kernel PROPERTIES TIMEOUT 60 LABELS "ptx;full" FIXTURES_REQUIRED ptx_runs)
endif()
