# Runs `kverify check` on a plugin and fails unless it ends with exit code EXIT and, where FOUND is
# given, prints a finding that contains it.
#   cmake -DKVERIFY=... -DPLUGIN=... -DOUT=... -DEXIT=1 "-DFOUND=device:race (stage device)" -P ...
execute_process(
  COMMAND ${KVERIFY} check --plugin ${PLUGIN} --cases 500 --seed 1 --out ${OUT}
  RESULT_VARIABLE exit OUTPUT_VARIABLE text ERROR_VARIABLE text)
message("${text}")
if(NOT exit STREQUAL EXIT)
  message(FATAL_ERROR "${PLUGIN}: expected exit code ${EXIT}, got ${exit}")
endif()
string(FIND "${text}" "${FOUND}" place)
if(FOUND AND place EQUAL -1)
  message(FATAL_ERROR "${PLUGIN}: expected a finding '${FOUND}'")
endif()
