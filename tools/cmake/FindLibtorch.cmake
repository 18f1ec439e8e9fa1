# libtorch as tools/deps unpacks it from the wheel: target Libtorch::Libtorch, for CPU programs.
# TorchConfig.cmake of the wheel asks for a CUDA toolkit, hence this.
set(libtorch_version 2.11.0)
if(DEFINED ENV{TRAININGJOB_CACHE})
  set(libtorch_cache $ENV{TRAININGJOB_CACHE})
else()
  set(libtorch_cache $ENV{HOME}/.cache/trainingjob)
endif()
set(Libtorch_ROOT ${libtorch_cache}/libtorch-${libtorch_version} CACHE PATH "folder with include/ and lib/ of libtorch")

find_path(Libtorch_INCLUDE torch/csrc/api/include/torch/torch.h PATHS ${Libtorch_ROOT}/include NO_DEFAULT_PATH)
find_library(Libtorch_CPU torch_cpu PATHS ${Libtorch_ROOT}/lib NO_DEFAULT_PATH)
find_library(Libtorch_C10 c10 PATHS ${Libtorch_ROOT}/lib NO_DEFAULT_PATH)
find_path(Libtorch_GLOO_INCLUDE gloo/context.h)  # the wheel lacks these headers; libgloo itself is inside libtorch
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch
  REQUIRED_VARS Libtorch_CPU Libtorch_C10 Libtorch_INCLUDE Libtorch_GLOO_INCLUDE
  REASON_FAILURE_MESSAGE "${Libtorch_ROOT} has no libtorch: tools/deps build puts it there")

if(Libtorch_FOUND AND NOT TARGET Libtorch::Libtorch)
  add_library(Libtorch::Libtorch INTERFACE IMPORTED)
  target_include_directories(Libtorch::Libtorch SYSTEM INTERFACE
    ${Libtorch_INCLUDE} ${Libtorch_INCLUDE}/torch/csrc/api/include ${Libtorch_GLOO_INCLUDE})
  # Without them the headers of c10d are empty.
  target_compile_definitions(Libtorch::Libtorch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  # Without OpenMP at::parallel_for is a plain loop. The libgomp found at run time is the one beside libtorch.
  target_compile_options(Libtorch::Libtorch INTERFACE -fopenmp)
  # Its headers name themselves in messages; the images' programs shall not name a folder of the machine that built them.
  target_compile_options(Libtorch::Libtorch INTERFACE -ffile-prefix-map=${Libtorch_ROOT}/=)
  target_link_libraries(Libtorch::Libtorch INTERFACE ${Libtorch_CPU} ${Libtorch_C10} gomp)
  # libtorch_cpu names CUDA symbols that a CPU program never calls.
  target_link_options(Libtorch::Libtorch INTERFACE -Wl,--allow-shlib-undefined)
endif()
