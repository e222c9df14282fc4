// The program that oracle_test starts.

#include "tools/oracle/oracle.h"

int main(int argc, char** argv) {
  return cleave::RunOracleWorker(argc, argv).value_or(2);
}
