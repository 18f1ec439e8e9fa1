# Header files of CUDA and NCCL, as tools/deps takes them out of wheels: target CudaHeaders::CudaHeaders. No libraries:
# what is compiled with them finds those of the GPU machine when it is loaded.
if(DEFINED ENV{TRAININGJOB_CACHE})
  set(cuda_headers_cache $ENV{TRAININGJOB_CACHE})
else()
  set(cuda_headers_cache $ENV{HOME}/.cache/trainingjob)
endif()
set(CudaHeaders_ROOT ${cuda_headers_cache}/cuda-headers-13.0 CACHE PATH "folder with include/ of CUDA 13.0 and NCCL")

find_path(CudaHeaders_INCLUDE nccl.h PATHS ${CudaHeaders_ROOT}/include NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaHeaders
  REQUIRED_VARS CudaHeaders_INCLUDE
  REASON_FAILURE_MESSAGE "${CudaHeaders_ROOT} has no headers of CUDA: tools/deps build puts them there")

if(CudaHeaders_FOUND AND NOT TARGET CudaHeaders::CudaHeaders)
  add_library(CudaHeaders::CudaHeaders INTERFACE IMPORTED)
  target_include_directories(CudaHeaders::CudaHeaders SYSTEM INTERFACE ${CudaHeaders_INCLUDE})
endif()
