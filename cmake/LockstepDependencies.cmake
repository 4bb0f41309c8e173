# Lockstep's dependencies from the system; the README has the reason for each.
# A library missing here is a package missing: deploy/packages.sh lists them,
# deploy/quickstart.sh and tests/run.sh install them.

include(LockstepTools)

find_package(Threads REQUIRED)
find_package(absl REQUIRED CONFIG)
find_package(Protobuf REQUIRED)
find_package(gRPC REQUIRED CONFIG)
find_program(LOCKSTEP_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(ZLIB REQUIRED)
find_package(spdlog REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(prometheus-cpp REQUIRED CONFIG)
find_path(LOCKSTEP_CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(GTest REQUIRED CONFIG)
find_package(benchmark REQUIRED CONFIG)

add_library(lockstep_cli11 INTERFACE)
target_include_directories(lockstep_cli11 SYSTEM
                           INTERFACE ${LOCKSTEP_CLI11_INCLUDE_DIR})
add_library(lockstep::cli11 ALIAS lockstep_cli11)

find_path(LOCKSTEP_NUMA_INCLUDE_DIR numa.h REQUIRED)
find_library(LOCKSTEP_NUMA_LIBRARY numa REQUIRED)
add_library(lockstep_libnuma INTERFACE)
target_include_directories(lockstep_libnuma SYSTEM
                           INTERFACE ${LOCKSTEP_NUMA_INCLUDE_DIR})
target_link_libraries(lockstep_libnuma INTERFACE ${LOCKSTEP_NUMA_LIBRARY})
add_library(lockstep::libnuma ALIAS lockstep_libnuma)

find_path(LOCKSTEP_SYSTEMD_INCLUDE_DIR systemd/sd-daemon.h REQUIRED)
find_library(LOCKSTEP_SYSTEMD_LIBRARY systemd REQUIRED)
add_library(lockstep_libsystemd INTERFACE)
target_include_directories(lockstep_libsystemd SYSTEM
                           INTERFACE ${LOCKSTEP_SYSTEMD_INCLUDE_DIR})
target_link_libraries(lockstep_libsystemd
                      INTERFACE ${LOCKSTEP_SYSTEMD_LIBRARY})
add_library(lockstep::libsystemd ALIAS lockstep_libsystemd)

find_path(LOCKSTEP_ZIP_INCLUDE_DIR zip.h REQUIRED)
find_library(LOCKSTEP_ZIP_LIBRARY zip REQUIRED)
add_library(lockstep_libzip INTERFACE)
target_include_directories(lockstep_libzip SYSTEM
                           INTERFACE ${LOCKSTEP_ZIP_INCLUDE_DIR})
target_link_libraries(lockstep_libzip INTERFACE ${LOCKSTEP_ZIP_LIBRARY})
add_library(lockstep::libzip ALIAS lockstep_libzip)
