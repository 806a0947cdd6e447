# Debian's SentencePiece: Sentencepiece::Sentencepiece (encoding, decoding, training).
find_path(Sentencepiece_INCLUDE_DIR sentencepiece_processor.h)
find_library(Sentencepiece_LIBRARY sentencepiece)
find_library(Sentencepiece_TRAIN_LIBRARY sentencepiece_train)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Sentencepiece
  REQUIRED_VARS Sentencepiece_LIBRARY Sentencepiece_TRAIN_LIBRARY Sentencepiece_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libsentencepiece-dev (scripts/setup.sh does)")
if(Sentencepiece_FOUND AND NOT TARGET Sentencepiece::Sentencepiece)
  add_library(Sentencepiece::Sentencepiece INTERFACE IMPORTED)
  target_include_directories(Sentencepiece::Sentencepiece SYSTEM INTERFACE ${Sentencepiece_INCLUDE_DIR})
  target_link_libraries(Sentencepiece::Sentencepiece INTERFACE ${Sentencepiece_TRAIN_LIBRARY} ${Sentencepiece_LIBRARY})
endif()
