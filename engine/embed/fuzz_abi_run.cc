// The calls of fuzz_abi on kernels: compiled, and run on tensors of all kinds.

#include "engine/embed/fuzz_abi.h"

namespace cleave::fuzz_abi {
namespace {

// Room of one tensor, which `data` points into the middle of.
constexpr size_t kRoom = 1 << 18;
constexpr int kTensors = 8;
constexpr int kMostAxes = 64;

struct Type {
  DLDataType dtype;
  std::vector<int64_t> shape;
  std::vector<bool> fixed;
};

DLDataType DTypeOf(const std::string& name) {
  if (name == "bool") return {kDLBool, 8, 1};
  if (name == "bf16") return {kDLBfloat, 16, 1};
  if (name == "key") return {kDLUInt, 64, 1};
  const auto bits = static_cast<uint8_t>(std::atoi(name.c_str() + 1));
  if (name[0] == 'u') return {kDLUInt, bits, 1};
  if (name[0] == 'i') return {kDLInt, bits, 1};
  if (name[0] == 'c') return {kDLComplex, bits, 1};
  return {kDLFloat, bits, 1};
}

struct Tensor {
  DLTensor tensor = {};
  int64_t shape[kMostAxes] = {};
  int64_t strides[kMostAxes] = {};
  alignas(64) unsigned char room[kRoom];
};

int64_t Elements(const Type& type) {
  int64_t elements = 1;
  for (const int64_t extent : type.shape) {
    if (extent < 0 || extent > 4096) return -1;
    elements *= extent;
    if (elements > 4096) return -1;
  }
  return elements;
}

cleave_status* HostFunction(void* context, const cleave_host_call* call) {
  if (context != nullptr) {
    return cleave_status_new(CLEAVE_UNIMPLEMENTED, "the host refuses");
  }
  for (size_t i = 0; i < call->result_count; ++i) {
    const DLTensor& result = *call->results[i];
    int64_t bytes = result.dtype.bits / 8;
    for (int32_t axis = 0; axis < result.ndim; ++axis) {
      bytes *= result.shape[axis];
    }
    if (bytes > 0) {
      std::memset(static_cast<char*>(result.data) + result.byte_offset, 0,
                  static_cast<size_t>(bytes));
    }
  }
  return nullptr;
}

void Loop(void*, int64_t tasks,
          void (*body)(void* state, int64_t begin, int64_t end), void* state) {
  // The last first, in ranges of unequal lengths.
  for (int64_t end = tasks; end > 0;) {
    const int64_t begin = end > 3 ? end - 3 : 0;
    body(state, begin, end);
    end = begin;
  }
}

void* Allocate(void* context, size_t bytes, size_t alignment) {
  // Null where the struct of options is older than the field.
  auto* const left = static_cast<int64_t*>(context);
  if ((left != nullptr && --*left < 0) || bytes > (size_t{1} << 28))
    return nullptr;
  void* place = nullptr;
  if (posix_memalign(&place,
                     alignment < sizeof(void*) ? sizeof(void*) : alignment,
                     bytes == 0 ? 1 : bytes) != 0) {
    return nullptr;
  }
  return place;
}

void Release(void*, void* address, size_t) { std::free(address); }

}  // namespace

void Fuzzer::Compile() {
  Trace("compile");
  cleave_compile_options compile = {};
  compile.struct_size = sizeof(compile);
  const char* const devices[] = {"cpu", "opencl", "abacus", ""};
  const char* const levels[] = {"sse4.1", "avx2", "avx1024", ""};
  compile.device = OneIn(3) ? Any(devices) : nullptr;
  compile.level = OneIn(3) ? Any(levels) : nullptr;
  compile.generalize = static_cast<int32_t>(Below(3));
  compile.approx = static_cast<int32_t>(Below(3));
  compile.host_kernels = OneIn(2) ? AnyOf(hosts_) : nullptr;
  cleave_kernel* made = nullptr;
  cleave_status* const status =
      cleave_kernel_compile(AnyOf(graphs_), Sized(&compile), Options(), &made);
  Keep(status, made, &kernels_, cleave_kernel_release);
}

void Fuzzer::Hosts() {
  if (hosts_.empty() || OneIn(20)) {
    Trace("host_kernels_new");
    cleave_host_kernels* made = nullptr;
    if (Done(cleave_host_kernels_new(&made))) {
      if (!hosts_.empty()) cleave_host_kernels_free(hosts_.front());
      hosts_.assign(1, made);
    }
    return;
  }
  Trace("host_kernels_set");
  const char* const names[] = {"softmax", "twice", "sum", ""};
  static int refused = 0;
  Done(cleave_host_kernels_set(
      AnyOf(hosts_), Mutated(Any(names)), OneIn(20) ? nullptr : HostFunction,
      OneIn(2) ? &refused : nullptr, OneIn(2) ? nullptr : +[](void*) {}));
}

void Fuzzer::Run() {
  static std::vector<Tensor> tensors(2 * kTensors);
  cleave_kernel* const kernel = AnyOf(kernels_);
  if (kernel == nullptr) {
    Trace("run of null");
    Done(cleave_kernel_run(kernel, nullptr, 0, nullptr, 0, nullptr));
    return;
  }
  // The types that the kernel takes, off the first line of its graph:
  //   graph (%x: f32[3, n]) -> (y: f32[3]) {
  cleave_graph* graph = nullptr;
  cleave_text* text = nullptr;
  Expect(cleave_kernel_graph(kernel, &graph));
  Expect(cleave_graph_print(graph, CLEAVE_FORMAT_TEXT, &text));
  std::string line = cleave_text_data(text);
  line = line.substr(0, line.find('\n'));
  cleave_text_free(text);
  cleave_graph_release(graph);
  std::map<std::string, int64_t> sizes;
  std::vector<Type> types[2];
  const size_t arrow = line.find("->");
  for (size_t at = line.find(": "); at != std::string::npos;
       at = line.find(": ", at + 1)) {
    const size_t open = line.find('[', at);
    const size_t close = line.find(']', at);
    if (open == std::string::npos || close == std::string::npos) break;
    Type type;
    type.dtype = DTypeOf(line.substr(at + 2, open - at - 2));
    std::string shape = line.substr(open + 1, close - open - 1);
    while (!shape.empty()) {
      const size_t comma = shape.find(", ");
      const std::string size = shape.substr(0, comma);
      shape = comma == std::string::npos ? "" : shape.substr(comma + 2);
      char* end = nullptr;
      const int64_t number = std::strtoll(size.c_str(), &end, 10);
      const bool fixed = *end == '\0';
      const auto named = sizes.emplace(size, Below(9)).first;
      type.shape.push_back(fixed ? number : named->second);
      type.fixed.push_back(fixed);
    }
    types[at > arrow].push_back(type);
  }
  const DLTensor* pointers[2][kTensors];
  for (int side = 0; side < 2; ++side) {
    if (types[side].size() > kTensors) return;
    for (size_t i = 0; i < types[side].size(); ++i) {
      const Type& type = types[side][i];
      if (Elements(type) < 0) return;
      Tensor& made = tensors[side * kTensors + i];
      DLTensor& tensor = made.tensor;
      tensor = {};
      tensor.data = made.room + kRoom / 2;
      tensor.device.device_type = kDLCPU;
      tensor.ndim = static_cast<int32_t>(type.shape.size());
      tensor.dtype = type.dtype;
      tensor.shape = made.shape;
      int64_t stride = 1;
      for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
        made.shape[axis] = type.shape[axis];
        made.strides[axis] = stride;
        stride *= type.shape[axis] > 0 ? type.shape[axis] : 1;
      }
      if (OneIn(3)) tensor.strides = made.strides;
      if (side == 0 && tensor.ndim > 0 && OneIn(3)) {
        // Any strides that stay within the room.
        tensor.strides = made.strides;
        int64_t* const one = &made.strides[Below(tensor.ndim)];
        *one = OneIn(3) ? 0 : OneIn(2) ? -*one : *one * 2;
      }
      if (OneIn(20)) {
        for (size_t byte = 0; byte < kRoom; byte += 8) {
          const uint64_t word = random_();
          std::memcpy(made.room + byte, &word, sizeof(word));
        }
      }
      if (OneIn(30)) tensor.data = nullptr;
      if (OneIn(30)) tensor.ndim = static_cast<int32_t>(Below(70)) - 5;
      if (tensor.ndim > kMostAxes) tensor.ndim = -1;
      if (OneIn(30)) tensor.device.device_type = DLDeviceType(Below(30));
      if (OneIn(30)) tensor.device.device_id = static_cast<int32_t>(random_());
      if (OneIn(30)) tensor.dtype.code = static_cast<uint8_t>(Below(30));
      if (OneIn(30)) tensor.dtype.bits = static_cast<uint8_t>(Below(256));
      if (OneIn(30)) tensor.dtype.lanes = static_cast<uint16_t>(Below(5));
      if (OneIn(30)) tensor.byte_offset = uint64_t(Below(70));
      if (OneIn(90)) tensor.byte_offset = 0 - uint64_t(Below(9)) * 64;
      if (OneIn(30)) tensor.shape = nullptr;
      const int64_t extents[] = {-1,
                                 0,
                                 1,
                                 7,
                                 int64_t{1} << 40,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min()};
      if (!type.shape.empty() && OneIn(20)) {
        const auto axis =
            static_cast<size_t>(Below(static_cast<int64_t>(type.shape.size())));
        // An open size may be any number, whose memory would have to be there.
        made.shape[axis] = type.fixed[axis] ? Any(extents) : -Below(3);
      }
      if (!type.shape.empty() && OneIn(30)) {
        const auto axis =
            static_cast<size_t>(Below(static_cast<int64_t>(type.shape.size())));
        if (type.shape[axis] > 1) {
          made.strides[axis] = OneIn(2) ? std::numeric_limits<int64_t>::min()
                                        : std::numeric_limits<int64_t>::max();
          tensor.strides = made.strides;
        }
      }
      // Results may lie where an operand lies.
      if (side == 1 && OneIn(9)) {
        tensor.data = tensors[0].room + kRoom / 2 + 64 * Below(3);
      }
      pointers[side][i] = OneIn(60) ? nullptr : &tensor;
    }
  }
  cleave_run_options run = {};
  run.struct_size = sizeof(run);
  cleave_text* report = nullptr;
  int64_t blocks = OneIn(2) ? 1000000 : Below(4);
  run.serial = static_cast<int32_t>(Below(2));
  run.threads = static_cast<int32_t>(Below(6)) - 1;
  if (OneIn(3)) run.parallel_for = Loop;
  if (OneIn(3)) run.allocate = Allocate;
  if (run.allocate != nullptr && !OneIn(20)) run.release = Release;
  run.allocator_context = &blocks;
  if (OneIn(30)) run.stream = &blocks;
  if (OneIn(5)) run.report = &report;
  if (OneIn(9)) run.cancel = cancel_;
  const cleave_run_options* const options = OneIn(2) ? nullptr : Sized(&run);
  size_t inputs = types[0].size();
  size_t outputs = types[1].size();
  if (OneIn(60)) inputs = inputs > 0 ? inputs - 1 : 0;
  if (OneIn(60)) outputs = outputs > 0 ? outputs - 1 : 0;
  if (OneIn(3)) {
    Trace("run_alloc");
    struct Context {
      int64_t refused_after;
    } context = {OneIn(9) ? Below(3) : 100};
    const cleave_make_output make = [](void* state, size_t index,
                                       DLTensor* tensor) -> int32_t {
      if (--static_cast<Context*>(state)->refused_after < 0) return 1;
      if (index >= kTensors) return 1;
      tensor->data = tensors[kTensors + index].room + kRoom / 2;
      return 0;
    };
    Done(cleave_kernel_run_alloc(kernel, OneIn(60) ? nullptr : pointers[0],
                                 inputs, OneIn(60) ? nullptr : make, &context,
                                 options));
  } else {
    Trace("run");
    Done(cleave_kernel_run(kernel, OneIn(60) ? nullptr : pointers[0], inputs,
                           OneIn(60) ? nullptr : pointers[1], outputs,
                           options));
  }
  cleave_text_free(report);
}

}  // namespace cleave::fuzz_abi
