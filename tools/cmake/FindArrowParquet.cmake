# Arrow's C++ libraries as tools/deps unpacks them from pyarrow's wheel: target ArrowParquet::ArrowParquet. The wheel has no
# configuration for CMake.
set(arrow_version 26.0.1)
set(arrow_soname 2600)
if(DEFINED ENV{TRAININGJOB_CACHE})
  set(arrow_cache $ENV{TRAININGJOB_CACHE})
else()
  set(arrow_cache $ENV{HOME}/.cache/trainingjob)
endif()
set(ArrowParquet_ROOT ${arrow_cache}/arrow-${arrow_version} CACHE PATH "folder with include/ and lib/ of Arrow")

find_path(ArrowParquet_INCLUDE parquet/file_reader.h PATHS ${ArrowParquet_ROOT}/include NO_DEFAULT_PATH)
# Files of these very names: there is no libarrow.so in the wheel.
find_file(ArrowParquet_ARROW libarrow.so.${arrow_soname} PATHS ${ArrowParquet_ROOT}/lib NO_DEFAULT_PATH)
find_file(ArrowParquet_PARQUET libparquet.so.${arrow_soname} PATHS ${ArrowParquet_ROOT}/lib NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ArrowParquet
  REQUIRED_VARS ArrowParquet_PARQUET ArrowParquet_ARROW ArrowParquet_INCLUDE
  REASON_FAILURE_MESSAGE "${ArrowParquet_ROOT} has no Arrow: tools/deps build puts it there")

if(ArrowParquet_FOUND AND NOT TARGET ArrowParquet::ArrowParquet)
  add_library(ArrowParquet::ArrowParquet INTERFACE IMPORTED)
  target_include_directories(ArrowParquet::ArrowParquet SYSTEM INTERFACE ${ArrowParquet_INCLUDE})
  # Its headers name themselves in messages; the images' programs shall not name a folder of the machine that built them.
  target_compile_options(ArrowParquet::ArrowParquet INTERFACE -ffile-prefix-map=${ArrowParquet_ROOT}/=)
  target_link_libraries(ArrowParquet::ArrowParquet INTERFACE ${ArrowParquet_PARQUET} ${ArrowParquet_ARROW})
endif()
