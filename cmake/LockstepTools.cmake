# Tools that make a build faster where they are installed and are not missed
# where they are not: a compiler cache and a quicker linker. A build folder keeps
# the choice of its first configuration. Otherwise the tests' command, which
# installs both, would compile again all that the quickstart compiled.

if(NOT DEFINED LOCKSTEP_CCACHE)
  find_program(LOCKSTEP_CCACHE ccache)
endif()
if(LOCKSTEP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without these two it does not cache what uses precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros ${LOCKSTEP_CCACHE})
endif()

if(NOT DEFINED LOCKSTEP_LLD)
  find_program(LOCKSTEP_LLD ld.lld)
endif()
if(LOCKSTEP_LLD AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-fuse-ld=")
  add_link_options(-fuse-ld=lld)
endif()
