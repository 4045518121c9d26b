# Which architectures and which toolkit a configuration gets: cmake -D SOURCE=FOLDER -D WORK=FOLDER -P archs_test.cmake. nvidia-smi is a script.
cmake_minimum_required(VERSION 3.25)
if(DEFINED CASE)
    # One configuration: what tessera_cuda_archs says, or what tessera_cuda_module ends with.
    include("${SOURCE}/cmake/TesseraCuda.cmake")
    if(CASE STREQUAL "module")
        tessera_cuda_module(some_plugin some_module SOURCES some.cu)
    else()
        tessera_cuda_archs(archs)
        message("archs: ${archs}")
    endif()
    return()
endif()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/nothing" "${WORK}/home")
# configure(CASE EXPECTED FOLDER OPTION...): output matches EXPECTED with FOLDER alone on the PATH.
function(configure case expected path)
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PATH=${path}" "HOME=${WORK}/home" "${CMAKE_COMMAND}" -D CASE=${case} -D "SOURCE=${SOURCE}"
        -D CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF ${ARGN} -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}" OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REGEX REPLACE "[ \n]+" " " output "${output}")
    if(NOT output MATCHES "${expected}")
        message(SEND_ERROR "${case}, ${path}, ${ARGN}: expected ${expected}; found: ${output}")
    endif()
endfunction()
# smi(NAME SCRIPT): a folder NAME with an nvidia-smi.
function(smi name script)
    file(WRITE "${WORK}/${name}/nvidia-smi" "#!/bin/sh\n${script}\n")
    file(CHMOD "${WORK}/${name}/nvidia-smi" PERMISSIONS OWNER_READ OWNER_EXECUTE)
endfunction()

# It is asked for the capabilities of all cards, and for nothing else.
smi(cards "[ \"$*\" = '--query-gpu=compute_cap --format=csv,noheader' ] && printf '8.6\\n6.1\\n8.6\\n12.0\\n'")
smi(failing "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9")
smi(old "echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2")
configure(archs "archs: 86;61;120 $" "${WORK}/cards")
configure(archs "archs: 61;80 $" "${WORK}/failing")
configure(archs "archs: 61;80 $" "${WORK}/old")
configure(archs "archs: 61;80 $" "${WORK}/nothing")
# What is asked for is not looked for.
configure(archs "archs: 70;90@61 $" "${WORK}/cards" "-DTSR_CUDA_ARCHS=70\\;90@61")
configure(archs "archs: 60;61;70;80;90;100;120 $" "${WORK}/cards" -DTSR_CUDA_ARCHS=all)

configure(module "configure with -DTSR_CUDA=ON" "${WORK}/nothing")
configure(module "There is no ${WORK}/nothing/bin/ptxas: run tools/setup --cuda, or name a CUDA 12 toolkit" "${WORK}/nothing" -DTSR_CUDA=ON
    "-DTSR_CUDA_TOOLKIT=${WORK}/nothing")

# The same asked for by tools/build: what it calls CMake with. build(EXPECTED ARGUMENT...)
file(COPY "${SOURCE}/tools/build" DESTINATION "${WORK}/tree/tools")
file(WRITE "${WORK}/recording/cmake" "#!/bin/sh\nprintf '[%s]' \"$@\" >>\"${WORK}/calls\"\n")
file(CHMOD "${WORK}/recording/cmake" PERMISSIONS OWNER_READ OWNER_EXECUTE)
function(build expected)
    file(WRITE "${WORK}/calls" "")
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PATH=${WORK}/recording:$ENV{PATH}" "${WORK}/tree/tools/build" ${ARGN} OUTPUT_VARIABLE said
        ERROR_VARIABLE said)
    file(READ "${WORK}/calls" calls)
    string(APPEND calls "${said}")
    if(NOT calls STREQUAL expected)
        message(SEND_ERROR "tools/build ${ARGN}: expected ${expected}\nfound ${calls}")
    endif()
endfunction()
build("[--preset][release][--build][--preset][release]")
build("[--preset][debug][-DX=1][--build][--preset][debug][--target][a][b]" debug -DX=1 a b)
build("[--preset][release][-DTSR_CUDA=ON][--build][--preset][release][--target][tessera]" release --cuda tessera)
build("[--preset][release][-DTSR_CUDA=ON][-DTSR_CUDA_ARCHS=all][--build][--preset][release]" --cuda-archs all)
build("[--preset][asan][-DTSR_CUDA=ON][-DTSR_CUDA_ARCHS=61;80][-DX=1][--build][--preset][asan]" asan --cuda-archs 61,80 -DX=1)
build("build: --cuda-archs needs a list, such as 61,80, or all\n" release --cuda-archs)
build("build: unknown option --gpu (known: -DOPTION=VALUE, --cuda, --cuda-archs LIST)\n" release --gpu)
