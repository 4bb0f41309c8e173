# find_package(Lockstep) defines lockstep::session: worker/session/session.h.
include(CMakeFindDependencyMacro)
find_dependency(absl)
include(${CMAKE_CURRENT_LIST_DIR}/LockstepTargets.cmake)
