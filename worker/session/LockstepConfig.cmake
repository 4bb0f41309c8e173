# find_package(Lockstep) defines what is installed of
#   lockstep::session   worker/session/session.h
#   lockstep::strategy  strategy/strategy.h
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(absl)
foreach(part LockstepTargets LockstepStrategyTargets)
  include(${CMAKE_CURRENT_LIST_DIR}/${part}.cmake OPTIONAL)
endforeach()
