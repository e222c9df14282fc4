// Leaks that LeakSanitizer is not to report in programs that open an OpenCL
// device: its driver frees not all that it has.

extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libpocl\nleak:libOpenCL\n";
}
