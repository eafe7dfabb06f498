# CUDA sources are compiled to PTX inside an ordinary fat binary by calling nvcc directly: CMake's
# own CUDA language insists on a toolkit laid out as NVIDIA's installer does, which the PyPI wheels
# are not.
# Where to look for it is known in one place: ci/setup.
if(NOT KV_NVCC)
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/ci/setup --nvcc OUTPUT_VARIABLE found
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT found)
    message(FATAL_ERROR "No CUDA 13 compiler was found. Run ci/setup, which installs one.")
  endif()
  set(KV_NVCC ${found} CACHE FILEPATH "nvcc of CUDA 13")
endif()
get_filename_component(KV_CUDA_ROOT ${KV_NVCC} REALPATH)
get_filename_component(KV_CUDA_ROOT ${KV_CUDA_ROOT} DIRECTORY)
get_filename_component(KV_CUDA_ROOT ${KV_CUDA_ROOT} DIRECTORY)
find_path(KV_CUDA_INCLUDE cuda_runtime_api.h
          HINTS ${KV_CUDA_ROOT}/include ${KV_CUDA_ROOT}/targets/x86_64-linux/include
          NO_DEFAULT_PATH REQUIRED)
# Not every toolkit has cuBLAS's headers; what needs them is left out without.
find_path(KV_CUBLAS_INCLUDE cublas_v2.h
          HINTS ${KV_CUDA_INCLUDE} ${CMAKE_SOURCE_DIR}/.deps/cublas/include NO_DEFAULT_PATH)

# kv_cuda_objects(out_variable SOURCES a.cu [ARCHS 80 89] [OPTIONS -DX] [ROOT tree]):
# objects holding PTX only (no cubin), with line information; position independent. Includes are
# relative to ROOT, by default this tree.
function(kv_cuda_objects out)
  cmake_parse_arguments(ARG "" "ROOT" "SOURCES;ARCHS;OPTIONS" ${ARGN})
  if(NOT ARG_ROOT)
    set(ARG_ROOT ${CMAKE_SOURCE_DIR})
  endif()
  if(NOT ARG_ARCHS)
    set(ARG_ARCHS 80)
  endif()
  set(gencode)
  foreach(arch ${ARG_ARCHS})
    list(APPEND gencode -gencode arch=compute_${arch},code=compute_${arch})
  endforeach()
  set(objects)
  foreach(source ${ARG_SOURCES})
    get_filename_component(absolute ${source} ABSOLUTE)
    string(MD5 tag "${out}${absolute}${ARG_OPTIONS}")
    string(SUBSTRING ${tag} 0 8 tag)
    get_filename_component(stem ${source} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${stem}.${tag}.cu.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${KV_NVCC} -std=c++20 -O3 -lineinfo ${gencode} -Xcompiler=-fPIC,-O2
              -I${ARG_ROOT} -I${ARG_ROOT}/impl/include ${ARG_OPTIONS}
              -MD -MT ${object} -MF ${object}.d -c ${absolute} -o ${object}
      DEPENDS ${absolute} DEPFILE ${object}.d
      COMMENT "nvcc ${source}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
