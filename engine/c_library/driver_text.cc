// The parts of every driver: types before its tables, functions behind them.

#include <cstddef>

#include "HalideRuntime.h"
#include "engine/c_library/driver.h"

namespace cleave::internal_aot {

// The layouts that kDriverTypes declares again, without Halide's header.
static_assert(sizeof(halide_dimension_t) == 16 &&
              offsetof(halide_dimension_t, min) == 0 &&
              offsetof(halide_dimension_t, extent) == 4 &&
              offsetof(halide_dimension_t, stride) == 8 &&
              offsetof(halide_dimension_t, flags) == 12);
static_assert(sizeof(halide_buffer_t) == 56 &&
              offsetof(halide_buffer_t, host) == 16 &&
              offsetof(halide_buffer_t, flags) == 24 &&
              offsetof(halide_buffer_t, type) == 32 &&
              offsetof(halide_buffer_t, dimensions) == 36 &&
              offsetof(halide_buffer_t, dim) == 40);
static_assert(sizeof(halide_type_t) == 4 &&
              offsetof(halide_type_t, bits) == 1 &&
              offsetof(halide_type_t, lanes) == 2);

const char kDriverTypes[] = R"c(
/* Halide's halide_dimension_t and halide_buffer_t. */
struct cleave_dimension {
  int32_t min, extent, stride;
  uint32_t flags;
};
struct cleave_buffer {
  uint64_t device;
  const void *device_interface;
  uint8_t *host;
  uint64_t flags;
  uint8_t code, bits;
  uint16_t lanes;
  int32_t dimensions;
  struct cleave_dimension *dim;
  void *padding;
};

/* Places in the table of sizes, the outermost axis first. */
struct cleave_shape {
  int rank;
  const int *sizes;
};

/* What inputs, outputs and what lies between kernels are; an array of a call
 * is freed behind the step `last`, or at the end if that is -1. */
struct cleave_array {
  struct cleave_shape shape;
  int element_bytes;
  int last;
};

/* An array as a kernel sees it. */
struct cleave_operand {
  int array;
  uint8_t code, bits;
  struct cleave_shape shape;
};

/* Element `component` of each group of `components` elements of an array must
 * be in [0, extent), unless one of the sizes of `reads` is 0; `replaced` stands
 * for `replacement`. Where `array` is -1, `count` numbers from `first` on must
 * be. Divisors, of so many bytes, must not be 0 instead. */
struct cleave_check {
  int array;
  int64_t component, components, replaced, replacement;
  int first, count, extent, divisor_bytes;
  struct cleave_shape reads;
};

/* No element of an array has an exponent of ones: these bits of it. */
struct cleave_finite {
  int array, element_bytes;
  uint64_t exponent;
};

/* An array of a call. */
struct cleave_memory {
  void *address;
  int64_t bytes;
  int owned;
};

/* Code of the driver's own, for a step that `about` describes. */
typedef int (*cleave_code_of_step)(const void *about, int level,
                                   const int64_t *sizes,
                                   struct cleave_memory *memory);

/* A kernel: its arguments are the sizes `dims`, and the operands: inputs, then
 * outputs. Where there is `code`, that runs instead. */
struct cleave_step {
  int dim_count, input_count, operand_count, check_count, finite_count;
  const int *dims;
  const struct cleave_operand *operands;
  const struct cleave_check *checks;
  const struct cleave_finite *finite;
  cleave_code_of_step code;
  const void *about;
};

/* The function, or a region of a loop or a choice: its steps are those from
 * `first_step` on. Inputs are its first arrays. `made` tells of each output
 * whether a step writes it where the caller wants it, or it is copied there. */
struct cleave_program {
  int input_count, output_count, array_count, first_step, step_count;
  const struct cleave_array *arrays;
  const int *outputs, *made;
};

/* Stands for a size that cannot be computed, of a region that may not run. */
#define CLEAVE_NO_SIZE INT64_MIN

/* What kernels get as their context. */
struct cleave_context {
  int refused; /* memory */
};
)c";

const char kDriverFunctions[] = R"c(
/* Memory, aligned to the widest vectors, and room on either side, which vector
 * code may read. NULL if there is none. By malloc, which is faster than what
 * aligns; its own address stands in front. */
enum { CLEAVE_ROOM = 64 };

static void *cleave_allocate(size_t bytes) {
  char *memory;
  void **address;
  if (bytes > SIZE_MAX / 2) return NULL;
  memory = (char *)malloc(bytes + 3 * CLEAVE_ROOM);
  if (memory == NULL) return NULL;
  address = (void **)(memory + 2 * CLEAVE_ROOM -
                      (uintptr_t)memory % CLEAVE_ROOM);
  address[-1] = memory;
  return address;
}

static void cleave_free(void *address) {
  if (address != NULL) free(((void **)address)[-1]);
}

/* These take the place of Halide's, within this library. */
void *halide_malloc(void *context, size_t bytes) {
  void *const address = cleave_allocate(bytes);
  if (address == NULL && context != NULL) {
    __atomic_store_n(&((struct cleave_context *)context)->refused, 1,
                     __ATOMIC_RELAXED);
  }
  return address;
}

void halide_free(void *context, void *address) {
  (void)context;
  cleave_free(address);
}

/* What a kernel returns says that it failed. */
void halide_error(void *context, const char *message) {
  (void)context;
  (void)message;
}

void halide_print(void *context, const char *message) {
  (void)context;
  (void)message;
}

static int cleave_count(struct cleave_shape shape, const int64_t *sizes,
                        int64_t *count) {
  int axis;
  *count = 1;
  for (axis = 0; axis < shape.rank; ++axis) {
    const int64_t extent = sizes[shape.sizes[axis]];
    if (extent < 0) return CLEAVE_BAD_DIMS;
    if (__builtin_mul_overflow(*count, extent, count)) return CLEAVE_TOO_LARGE;
  }
  return CLEAVE_OK;
}

/* The buffer of an operand, without its address. Its last axis is Halide's
 * first. */
static int cleave_describe(const struct cleave_operand *operand, int is_input,
                           const int64_t *sizes, struct cleave_buffer *buffer,
                           struct cleave_dimension *dimensions) {
  const struct cleave_shape shape = operand->shape;
  int64_t count, stride = 1;
  int axis;
  const int code = cleave_count(shape, sizes, &count);
  /* An empty input has one row, which all of its reads fall into. */
  const int row = is_input && count == 0;
  if (code != CLEAVE_OK) return code;
  if (count > INT32_MAX / (operand->bits / 8)) return CLEAVE_TOO_LARGE;
  memset(buffer, 0, sizeof *buffer);
  for (axis = 0; axis < shape.rank; ++axis) {
    int64_t extent = sizes[shape.sizes[shape.rank - 1 - axis]];
    if (row && extent == 0) extent = 1;
    if (extent > INT32_MAX || stride > INT32_MAX) return CLEAVE_TOO_LARGE;
    dimensions[axis].min = 0;
    dimensions[axis].extent = (int32_t)extent;
    dimensions[axis].stride = (int32_t)stride;
    dimensions[axis].flags = 0;
    stride = row ? 0 : stride * extent;
  }
  buffer->code = operand->code;
  buffer->bits = operand->bits;
  buffer->lanes = 1;
  buffer->dimensions = shape.rank;
  buffer->dim = dimensions;
  return CLEAVE_OK;
}

static int cleave_fits(const struct cleave_buffer *buffer, int64_t margin) {
  int64_t elements = 1;
  int axis;
  for (axis = 0; axis < buffer->dimensions; ++axis) {
    const int64_t stride = buffer->dim[axis].stride;
    const int64_t extent = buffer->dim[axis].extent + 2 * margin;
    if (extent * (stride > 1 ? stride : 1) > INT32_MAX) return 0;
    elements *= extent;
    if (elements > INT32_MAX) return 0;
  }
  return 1;
}

/* Lets the kernel take an input for larger than it is, on all sides. A kernel
 * checks, before its loops, where their bodies read; a body is simplified to
 * what holds within its loop. So the check is wrong for a loop over nothing, or
 * over no blocks of a short axis. Nothing is read there. */
static void cleave_widen(struct cleave_buffer *buffer) {
  int64_t margin = 1 << 20, before = 0;
  int axis;
  while (margin > 0 && !cleave_fits(buffer, margin)) margin /= 2;
  for (axis = 0; axis < buffer->dimensions; ++axis) {
    struct cleave_dimension *const dim = &buffer->dim[axis];
    dim->min = (int32_t)-margin;
    dim->extent += (int32_t)(2 * margin);
    before += margin * dim->stride;
  }
  /* An integer, since it may lie outside of what the address points to. */
  buffer->host = (uint8_t *)((uintptr_t)buffer->host -
                             (uintptr_t)(before * (buffer->bits / 8)));
}

static int cleave_check_indices(const struct cleave_check *check,
                                const int64_t *sizes,
                                const struct cleave_memory *memory) {
  const int64_t extent = sizes[check->extent];
  const int64_t *indices;
  int64_t count, i, outside = 0;
  int axis;
  for (axis = 0; axis < check->reads.rank; ++axis) {
    if (sizes[check->reads.sizes[axis]] == 0) return CLEAVE_OK;
  }
  if (check->array < 0) {
    const int64_t first = sizes[check->first];
    count = sizes[check->count];
    if (check->divisor_bytes > 0) {
      const int zero = first <= 0 && first > -count;
      return zero ? CLEAVE_DIVIDED_BY_ZERO : CLEAVE_OK;
    }
    if (count <= 0 || (first >= 0 && first <= extent - count)) return CLEAVE_OK;
    return CLEAVE_BAD_INDEX;
  }
  if (check->divisor_bytes > 0) {
    const char *const divisors = (const char *)memory[check->array].address;
    static const char zero[8] = {0};
    for (i = 0; i < memory[check->array].bytes; i += check->divisor_bytes) {
      outside |= memcmp(divisors + i, zero, (size_t)check->divisor_bytes) == 0;
    }
    return outside ? CLEAVE_DIVIDED_BY_ZERO : CLEAVE_OK;
  }
  indices = (const int64_t *)memory[check->array].address;
  count = memory[check->array].bytes / (int64_t)sizeof *indices;
  for (i = check->component; i < count; i += check->components) {
    const int64_t index = indices[i] == check->replaced ? check->replacement
                                                        : indices[i];
    outside |= (uint64_t)index >= (uint64_t)extent;
  }
  return outside ? CLEAVE_BAD_INDEX : CLEAVE_OK;
}

static int cleave_check_finite(const struct cleave_finite *finite,
                               const struct cleave_memory *memory) {
  const int64_t count = memory[finite->array].bytes / finite->element_bytes;
  const void *const x = memory[finite->array].address;
  int64_t i;
  int any = 0;
  if (finite->element_bytes == 2) {
    const uint16_t exponent = (uint16_t)finite->exponent;
    const uint16_t *const bits = (const uint16_t *)x;
    for (i = 0; i < count; ++i) any |= (bits[i] & exponent) == exponent;
  } else if (finite->element_bytes == 4) {
    const uint32_t exponent = (uint32_t)finite->exponent;
    const uint32_t *const bits = (const uint32_t *)x;
    for (i = 0; i < count; ++i) any |= (bits[i] & exponent) == exponent;
  } else {
    const uint64_t *const bits = (const uint64_t *)x;
    for (i = 0; i < count; ++i) {
      any |= (bits[i] & finite->exponent) == finite->exponent;
    }
  }
  return any ? CLEAVE_NOT_FINITE : CLEAVE_OK;
}

/* Whether there is memory for the elements of an array, which is made if there
 * is none. */
static int cleave_provide(struct cleave_memory *array) {
  if (array->bytes == 0 || array->address != NULL) return 1;
  array->address = cleave_allocate((size_t)array->bytes);
  array->owned = array->address != NULL;
  return array->owned;
}

static void cleave_release(struct cleave_memory *array) {
  if (!array->owned) return;
  cleave_free(array->address);
  array->address = NULL;
  array->owned = 0;
}

/* Measures all arrays, and finds what the sizes alone decide. */
static int cleave_prepare(const struct cleave_program *program,
                          const int64_t *sizes, struct cleave_memory *memory) {
  struct cleave_buffer buffer;
  struct cleave_dimension dimensions[CLEAVE_MAX_RANK];
  int64_t count;
  int i, k, code;
  if (!cleave_guards_hold(program, sizes)) return CLEAVE_BAD_DIMS;
  for (i = 0; i < program->array_count; ++i) {
    const struct cleave_array *const array = &program->arrays[i];
    code = cleave_count(array->shape, sizes, &count);
    if (code != CLEAVE_OK) return code;
    if (count > INT64_MAX / 2 / array->element_bytes) return CLEAVE_TOO_LARGE;
    memory[i].address = NULL;
    memory[i].bytes = count * array->element_bytes;
    memory[i].owned = 0;
  }
  for (i = 0; i < program->step_count; ++i) {
    const struct cleave_step *const step =
        &cleave_steps[program->first_step + i];
    for (k = 0; k < step->operand_count; ++k) {
      code = cleave_describe(&step->operands[k], k < step->input_count, sizes,
                             &buffer, dimensions);
      if (code != CLEAVE_OK) return code;
    }
    for (k = 0; k < step->dim_count; ++k) {
      const int64_t size = sizes[step->dims[k]];
      if (size == CLEAVE_NO_SIZE) return CLEAVE_BAD_DIMS;
      if (size < INT32_MIN || size > INT32_MAX) return CLEAVE_TOO_LARGE;
    }
    for (k = 0; k < step->check_count; ++k) {
      const struct cleave_check *const check = &step->checks[k];
      const struct cleave_shape reads = check->reads;
      int axis;
      if (sizes[check->extent] == CLEAVE_NO_SIZE ||
          sizes[check->first] == CLEAVE_NO_SIZE ||
          sizes[check->count] == CLEAVE_NO_SIZE) {
        return CLEAVE_BAD_DIMS;
      }
      for (axis = 0; axis < reads.rank; ++axis) {
        if (sizes[reads.sizes[axis]] < 0) return CLEAVE_BAD_DIMS;
      }
      if (check->array >= 0) continue;
      code = cleave_check_indices(check, sizes, memory);
      if (code != CLEAVE_OK) return code;
    }
  }
  return CLEAVE_OK;
}

static int cleave_overlap(const void *a, int64_t a_bytes, const void *b,
                          int64_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 &&
         (uintptr_t)a < (uintptr_t)b + (uintptr_t)b_bytes &&
         (uintptr_t)b < (uintptr_t)a + (uintptr_t)a_bytes;
}

/* Gives the arrays of the caller their addresses. An input that an output
 * overlaps is copied. */
static int cleave_bind(const void *const *inputs, void *const *outputs,
                       struct cleave_memory *memory) {
  int i, k;
  const int *const made = cleave_programs[0].made;
  const int *const results = cleave_programs[0].outputs;
  for (i = 0; i < CLEAVE_OUTPUTS; ++i) {
    const int64_t bytes = memory[results[i]].bytes;
    if (outputs[i] == NULL && bytes > 0) return CLEAVE_BAD_ARRAY;
    for (k = 0; k < i; ++k) {
      if (cleave_overlap(outputs[i], bytes, outputs[k],
                         memory[results[k]].bytes)) {
        return CLEAVE_BAD_ARRAY;
      }
    }
  }
  for (i = 0; i < CLEAVE_INPUTS; ++i) {
    int copied = 0;
    if (inputs[i] == NULL && memory[i].bytes > 0) return CLEAVE_BAD_ARRAY;
    for (k = 0; k < CLEAVE_OUTPUTS; ++k) {
      copied |= cleave_overlap(inputs[i], memory[i].bytes, outputs[k],
                               memory[results[k]].bytes);
    }
    memory[i].address = (void *)(uintptr_t)inputs[i]; /* is only read */
    if (!copied) continue;
    memory[i].address = cleave_allocate((size_t)memory[i].bytes);
    if (memory[i].address == NULL) return CLEAVE_OUT_OF_MEMORY;
    memory[i].owned = 1;
    memcpy(memory[i].address, inputs[i], (size_t)memory[i].bytes);
  }
  for (i = 0; i < CLEAVE_OUTPUTS; ++i) {
    if (made[i]) memory[results[i]].address = outputs[i];
  }
  return CLEAVE_OK;
}

static int cleave_call(cleave_kernel kernel, const struct cleave_step *step,
                       const int64_t *sizes, struct cleave_memory *memory) {
  /* What arrays without elements point to: kernels may read the first row of
   * what has none. */
  static uint64_t nothing[512] __attribute__((aligned(64)));
  struct cleave_buffer buffers[CLEAVE_MAX_OPERANDS];
  struct cleave_dimension dimensions[CLEAVE_MAX_OPERANDS][CLEAVE_MAX_RANK];
  int32_t dims[CLEAVE_MAX_DIMS];
  void *arguments[1 + CLEAVE_MAX_DIMS + CLEAVE_MAX_OPERANDS];
  void *rows[CLEAVE_MAX_OPERANDS];
  struct cleave_context context = {0};
  void *pointer = &context;
  int code = CLEAVE_OK, row_count = 0, argument = 0, is_short = 0, i;
  arguments[argument++] = &pointer;
  for (i = 0; i < step->dim_count; ++i) {
    dims[i] = (int32_t)sizes[step->dims[i]];
    is_short |= dims[i] < 65536; /* loops go over smaller blocks */
    arguments[argument++] = &dims[i];
  }
  for (i = 0; i < step->operand_count; ++i) {
    const struct cleave_operand *const operand = &step->operands[i];
    struct cleave_memory *const array = &memory[operand->array];
    if (code == CLEAVE_OK) {
      code = cleave_describe(operand, i < step->input_count, sizes, &buffers[i],
                             dimensions[i]);
    }
    if (code != CLEAVE_OK) break;
    if (array->bytes == 0) {
      const size_t row = operand->shape.rank == 0
                             ? 0
                             : (size_t)dimensions[i][0].extent * 8;
      buffers[i].host = (uint8_t *)nothing;
      if (row > sizeof nothing) {
        rows[row_count] = cleave_allocate(row);
        if (rows[row_count] == NULL) {
          code = CLEAVE_OUT_OF_MEMORY;
        } else {
          memset(rows[row_count], 0, row);
        }
        buffers[i].host = (uint8_t *)rows[row_count++];
      }
    } else {
      if (!cleave_provide(array)) code = CLEAVE_OUT_OF_MEMORY;
      buffers[i].host = (uint8_t *)array->address;
    }
    if (is_short && i < step->input_count) cleave_widen(&buffers[i]);
    arguments[argument++] = &buffers[i];
  }
  if (code == CLEAVE_OK && kernel(arguments) != 0) {
    code = context.refused ? CLEAVE_OUT_OF_MEMORY : CLEAVE_INTERNAL;
  }
  while (row_count > 0) cleave_free(rows[--row_count]);
  return code;
}

/* `index` counts the steps of all programs. */
static int cleave_run_step(const struct cleave_program *program, int index,
                           int level, const int64_t *sizes,
                           struct cleave_memory *memory) {
  const struct cleave_step *const step = &cleave_steps[index];
  int code = CLEAVE_OK, elements = 0, i;
  for (i = 0; i < step->check_count && code == CLEAVE_OK; ++i) {
    code = cleave_check_indices(&step->checks[i], sizes, memory);
  }
  for (i = 0; i < step->finite_count && code == CLEAVE_OK; ++i) {
    code = cleave_check_finite(&step->finite[i], memory);
  }
  for (i = step->input_count; i < step->operand_count; ++i) {
    elements |= memory[step->operands[i].array].bytes > 0;
  }
  if (code == CLEAVE_OK && step->code != NULL) {
    code = step->code(step->about, level, sizes, memory);
  } else if (code == CLEAVE_OK && elements) {
    code = cleave_call(cleave_kernels[level][index], step, sizes, memory);
  }
  for (i = 0; i < program->array_count; ++i) {
    if (program->arrays[i].last == index) cleave_release(&memory[i]);
  }
  return code;
}

/* Runs a program whose inputs have their addresses, and frees all that is its
 * own. */
static int cleave_run_steps(const struct cleave_program *program, int level,
                            const int64_t *sizes, struct cleave_memory *memory,
                            void *const *outputs) {
  const int first = program->first_step;
  int code = CLEAVE_OK, i;
  for (i = 0; i < program->step_count && code == CLEAVE_OK; ++i) {
    code = cleave_run_step(program, first + i, level, sizes, memory);
  }
  for (i = 0; i < program->output_count && code == CLEAVE_OK; ++i) {
    const struct cleave_memory *const array = &memory[program->outputs[i]];
    if (program->made[i] || outputs[i] == NULL || array->bytes == 0) continue;
    memcpy(outputs[i], array->address, (size_t)array->bytes);
  }
  for (i = 0; i < program->array_count; ++i) cleave_release(&memory[i]);
  return code;
}
)c";

const char kDriverRun[] = R"c(
static int cleave_run(const int64_t *dims, const void *const *inputs,
                      void *const *outputs) {
  const struct cleave_program *const program = &cleave_programs[0];
  int64_t sizes[CLEAVE_SIZES];
  struct cleave_memory memory[CLEAVE_ARRAYS];
  const int level = cleave_level();
  int code = CLEAVE_OK, i;
  if (level < 0) return CLEAVE_UNSUPPORTED_CPU;
  for (i = 0; i < CLEAVE_DIMS; ++i) {
    if (dims[i] < 0 || dims[i] > INT32_MAX) return CLEAVE_BAD_DIMS;
  }
  code = cleave_compute_sizes(dims, sizes);
  if (code == CLEAVE_OK) code = cleave_prepare(program, sizes, memory);
  if (code != CLEAVE_OK) return code;
  code = cleave_bind(inputs, outputs, memory);
  if (code == CLEAVE_OK) {
    return cleave_run_steps(program, level, sizes, memory, outputs);
  }
  for (i = 0; i < CLEAVE_ARRAYS; ++i) cleave_release(&memory[i]);
  return code;
}
)c";

}  // namespace cleave::internal_aot
