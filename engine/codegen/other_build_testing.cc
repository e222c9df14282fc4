// A code generator of another version; without CLEAVE_TEST_VERSION, none at
// all.

#ifdef CLEAVE_TEST_VERSION
extern "C" const char* cleave_code_generator_version() {
  return CLEAVE_TEST_VERSION;
}
extern "C" void cleave_generate_code() {}
#endif
