# Several sources of a target are compiled as one, for most of what a compiler
# does here is to parse the same headers again.
#
# Preset dev compiles each source alone, and finds what one forgot to include.
#
# Sources that define the same name, as `kInvalid` in unnamed namespaces, come
# into different groups; a name that a source gets later is seen when CMake runs
# the next time. What the patterns below do not see is a source's property
# SKIP_UNITY_BUILD_INCLUSION.

set(LOCKSTEP_SOURCES_OF_A_GROUP 8)

# Sets OUT to the names that a source defines at the beginning of a line:
# functions, constants, types, aliases and matchers; not methods.
function(_lockstep_names_defined_by source out)
  file(READ ${source} text)
  # In a list, brackets and semicolons mean something else.
  string(REGEX REPLACE "[[{;]" "(" text "\n${text}")
  string(REGEX REPLACE "[]}]" ")" text "${text}")
  string(REGEX MATCHALL "\n[A-Za-z][A-Za-z0-9_:<>,&* ]*[(=]" lines "${text}")
  list(FILTER lines EXCLUDE REGEX
       "^\n(namespace|TEST|TYPED_TEST|INSTANTIATE|using [^=]*[(])")
  # What a type derives from is not its name.
  list(TRANSFORM lines REPLACE " (final )?: .*" " (")
  list(TRANSFORM lines REPLACE
       ".*[^A-Za-z0-9_]([A-Za-z0-9_]+) *[(=]$" "\\1"
       REGEX "[^:A-Za-z0-9_][A-Za-z0-9_]+ *[(=]$")
  list(FILTER lines INCLUDE REGEX "^[A-Za-z0-9_]+$")
  string(REGEX MATCHALL "\nMATCHER[_A-Z0-9]*[(][A-Za-z0-9_]+" matchers "${text}")
  list(TRANSFORM matchers REPLACE ".*[(]" "")
  set(${out} ${lines} ${matchers} PARENT_SCOPE)
endfunction()

# Sets OUT if the two lists have an element in common.
function(_lockstep_have_common out one other)
  set(${out} FALSE PARENT_SCOPE)
  foreach(element IN LISTS ${one})
    if(element IN_LIST ${other})
      set(${out} TRUE PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

function(_lockstep_compile_together target)
  if(NOT LOCKSTEP_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Debug")
    return()
  endif()
  set(groups 0)
  foreach(source ${ARGN})
    get_filename_component(path ${source} ABSOLUTE)
    if(NOT path MATCHES "[.]cc$" OR NOT EXISTS ${path})
      continue()
    endif()
    _lockstep_names_defined_by(${path} names)
    set(group 0)
    while(group LESS groups)
      list(LENGTH sources_${group} length)
      _lockstep_have_common(clash names names_${group})
      if(length LESS LOCKSTEP_SOURCES_OF_A_GROUP AND NOT clash)
        break()
      endif()
      math(EXPR group "${group} + 1")
    endwhile()
    if(group EQUAL groups)
      math(EXPR groups "${groups} + 1")
      set(names_${group})
      set(sources_${group})
    endif()
    list(APPEND names_${group} ${names})
    list(APPEND sources_${group} ${source})
  endforeach()
  set_target_properties(${target} PROPERTIES
                        UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(group RANGE ${groups})
    list(LENGTH sources_${group} length)
    if(length GREATER 1)
      set_source_files_properties(${sources_${group}} PROPERTIES
                                  UNITY_GROUP ${target}_${group})
    endif()
  endforeach()
endfunction()
