// The parts of a driver that goes around regions: types before its tables,
// functions behind them.

#include "engine/c_library/driver.h"

namespace cleave::internal_aot {

const char kLoopTypes[] = R"c(
/* A loop or a choice: its operands and results are arrays, -1 a result that
 * nobody reads. The first `consts` operands are the same for each step, and the
 * next `carries` go from step to step; a scan takes slices of the others. It
 * goes on for a size `length`, and a while for a size `max` at most, or -1. */
struct cleave_loop {
  const int *operands, *results;
  int consts, carries, reverse, length, max;
  int programs[2];
};
)c";

const char kLoopFunctions[] = R"c(
/* Runs a prepared program whose inputs have their addresses. NULL is for an
 * output that nobody reads. */
static int cleave_run_region(const struct cleave_program *program, int level,
                             const int64_t *sizes, struct cleave_memory *memory,
                             void *const *outputs) {
  int i;
  for (i = 0; i < program->output_count; ++i) {
    if (program->made[i]) memory[program->outputs[i]].address = outputs[i];
  }
  return cleave_run_steps(program, level, sizes, memory, outputs);
}
)c";

const char kCarryFunctions[] = R"c(
/* Two places for each carry, of which a step reads one and writes the other:
 * the result, and behind it one of the block that this returns; NULL if there
 * is no memory. */
static void *cleave_place_carries(const struct cleave_loop *loop,
                                  const struct cleave_memory *memory,
                                  void **places) {
  const int *const operands = loop->operands + loop->consts;
  size_t total = 0;
  char *block = NULL;
  int pass, i;
  for (pass = 0; pass < 2; ++pass) {
    char *next = block;
    for (i = 0; i < loop->carries; ++i) {
      const int result = loop->results[i];
      const size_t bytes =
          ((size_t)memory[operands[i]].bytes + CLEAVE_ROOM - 1) / CLEAVE_ROOM *
          CLEAVE_ROOM;
      if (pass == 0) {
        total += result < 0 ? 2 * bytes : bytes;
        continue;
      }
      places[2 * i] = next;
      next += bytes;
      places[2 * i + 1] = result < 0 ? next : memory[result].address;
      next += result < 0 ? bytes : 0;
    }
    if (pass == 0) block = (char *)cleave_allocate(total);
    if (block == NULL) return NULL;
  }
  return block;
}

/* The results get what the carries are. */
static void cleave_take_carries(const struct cleave_loop *loop,
                                struct cleave_memory *memory,
                                void *const *carries) {
  int i;
  for (i = 0; i < loop->carries; ++i) {
    struct cleave_memory *const result =
        loop->results[i] < 0 ? NULL : &memory[loop->results[i]];
    if (result == NULL || result->bytes == 0) continue;
    if (result->address == carries[i]) continue;
    memcpy(result->address, carries[i], (size_t)result->bytes);
  }
}
)c";

const char kScanFunction[] = R"c(
static void *cleave_slice(const struct cleave_memory *array, int64_t index,
                          int64_t bytes) {
  return bytes == 0 ? NULL : (char *)array->address + index * bytes;
}

static int cleave_scan(const void *about, int level, const int64_t *sizes,
                       struct cleave_memory *memory) {
  const struct cleave_loop *const loop = (const struct cleave_loop *)about;
  const struct cleave_program *const body =
      &cleave_programs[loop->programs[0]];
  const int64_t length = sizes[loop->length];
  const int first_slice = loop->consts + loop->carries;
  struct cleave_memory inner[body->array_count];
  void *carries[loop->carries + 1];
  void *places[2 * loop->carries + 1];
  void *outputs[body->output_count];
  void *block;
  int64_t step;
  int code = CLEAVE_OK, i;
  if (length == CLEAVE_NO_SIZE) return CLEAVE_BAD_DIMS;
  for (i = 0; i < body->output_count; ++i) {
    if (loop->results[i] < 0) continue;
    if (!cleave_provide(&memory[loop->results[i]])) return CLEAVE_OUT_OF_MEMORY;
  }
  if (length > 0) code = cleave_prepare(body, sizes, inner);
  if (code != CLEAVE_OK) return code;
  block = cleave_place_carries(loop, memory, places);
  if (block == NULL) return CLEAVE_OUT_OF_MEMORY;
  for (i = 0; i < loop->carries; ++i) {
    carries[i] = memory[loop->operands[loop->consts + i]].address;
  }
  for (step = 0; step < length && code == CLEAVE_OK; ++step) {
    const int64_t at = loop->reverse ? length - 1 - step : step;
    /* The last step writes the results. */
    const int place = (length - step) % 2 != 0;
    for (i = 0; i < body->input_count; ++i) {
      const struct cleave_memory *const operand = &memory[loop->operands[i]];
      inner[i].address = i < loop->consts  ? operand->address
                         : i < first_slice ? carries[i - loop->consts]
                                           : cleave_slice(operand, at,
                                                          inner[i].bytes);
    }
    for (i = 0; i < body->output_count; ++i) {
      const int result = loop->results[i];
      if (i < loop->carries) {
        outputs[i] = carries[i] = places[2 * i + place];
      } else if (result < 0) {
        outputs[i] = NULL;
      } else {
        outputs[i] = cleave_slice(&memory[result], at,
                                  inner[body->outputs[i]].bytes);
      }
    }
    code = cleave_run_region(body, level, sizes, inner, outputs);
  }
  if (code == CLEAVE_OK) cleave_take_carries(loop, memory, carries);
  cleave_free(block);
  return code;
}
)c";

const char kWhileFunction[] = R"c(
static int cleave_while(const void *about, int level, const int64_t *sizes,
                        struct cleave_memory *memory) {
  const struct cleave_loop *const loop = (const struct cleave_loop *)about;
  const struct cleave_program *const condition =
      &cleave_programs[loop->programs[0]];
  const struct cleave_program *const body =
      &cleave_programs[loop->programs[1]];
  struct cleave_memory asked[condition->array_count];
  struct cleave_memory inner[body->array_count + 1];
  void *carries[loop->carries + 1];
  void *places[2 * loop->carries + 1];
  void *outputs[body->output_count + 1];
  uint8_t goes_on = 0;
  void *const answer = &goes_on;
  void *block;
  int64_t step;
  int code, i;
  for (i = 0; i < loop->carries; ++i) {
    if (loop->results[i] < 0) continue;
    if (!cleave_provide(&memory[loop->results[i]])) return CLEAVE_OUT_OF_MEMORY;
  }
  code = cleave_prepare(condition, sizes, asked);
  if (code != CLEAVE_OK) return code;
  block = cleave_place_carries(loop, memory, places);
  if (block == NULL) return CLEAVE_OUT_OF_MEMORY;
  for (i = 0; i < loop->carries; ++i) {
    carries[i] = memory[loop->operands[loop->consts + i]].address;
  }
  for (step = 0; code == CLEAVE_OK; ++step) {
    for (i = 0; i < condition->input_count; ++i) {
      asked[i].address = i < loop->consts ? memory[loop->operands[i]].address
                                          : carries[i - loop->consts];
    }
    code = cleave_run_region(condition, level, sizes, asked, &answer);
    if (code != CLEAVE_OK || !goes_on) break;
    if (loop->max >= 0 && sizes[loop->max] == CLEAVE_NO_SIZE) {
      code = CLEAVE_BAD_DIMS;
    } else if (loop->max >= 0 && step >= sizes[loop->max]) {
      code = CLEAVE_TOO_MANY_STEPS;
    } else if (step == 0) {
      code = cleave_prepare(body, sizes, inner);
    }
    if (code != CLEAVE_OK) break;
    for (i = 0; i < body->input_count; ++i) {
      inner[i].address = i < loop->consts ? memory[loop->operands[i]].address
                                          : carries[i - loop->consts];
    }
    for (i = 0; i < body->output_count; ++i) {
      outputs[i] = carries[i] = places[2 * i + step % 2];
    }
    code = cleave_run_region(body, level, sizes, inner, outputs);
  }
  if (code == CLEAVE_OK) cleave_take_carries(loop, memory, carries);
  cleave_free(block);
  return code;
}
)c";

const char kCondFunction[] = R"c(
static int cleave_cond(const void *about, int level, const int64_t *sizes,
                       struct cleave_memory *memory) {
  const struct cleave_loop *const loop = (const struct cleave_loop *)about;
  const int is_else = *(const uint8_t *)memory[loop->operands[0]].address == 0;
  const struct cleave_program *const chosen =
      &cleave_programs[loop->programs[is_else]];
  struct cleave_memory inner[chosen->array_count];
  void *outputs[chosen->output_count];
  int code, i;
  code = cleave_prepare(chosen, sizes, inner);
  if (code != CLEAVE_OK) return code;
  for (i = 0; i < chosen->input_count; ++i) {
    inner[i].address = memory[loop->operands[1 + i]].address;
  }
  for (i = 0; i < chosen->output_count; ++i) {
    outputs[i] = NULL;
    if (loop->results[i] < 0) continue;
    if (!cleave_provide(&memory[loop->results[i]])) return CLEAVE_OUT_OF_MEMORY;
    outputs[i] = memory[loop->results[i]].address;
  }
  return cleave_run_region(chosen, level, sizes, inner, outputs);
}
)c";

}  // namespace cleave::internal_aot
