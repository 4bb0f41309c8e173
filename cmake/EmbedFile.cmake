# cmake -DINPUT=FILE -DOUTPUT=FILE.cc -DNAME=kName -DNAMESPACE=lockstep
# -P EmbedFile.cmake: writes the bytes of a file as lockstep::kName, and their
# number as lockstep::kNameBytes.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <cstddef>
namespace ${NAMESPACE} {
extern const unsigned char ${NAME}[];
extern const std::size_t ${NAME}Bytes;
const unsigned char ${NAME}[] = {${bytes}};
const std::size_t ${NAME}Bytes = sizeof(${NAME});
}  // namespace ${NAMESPACE}
")
