// The parts of a driver that sorts: types before its tables, functions behind
// them.

#include "engine/c_library/driver.h"

namespace cleave::internal_aot {

const char kSortTypes[] = R"c(
/* A sort of the lines of array `x` along an axis of `shape`. An element of so
 * many bytes is unsigned, or signed, or a float whose infinity has those bits.
 * Of each line of the arrays `values` and `indices`, -1 where nobody reads
 * them, no more than `limit` elements are wanted, from the first on. */
struct cleave_sort {
  int x, values, indices;
  struct cleave_shape shape;
  int axis, descending, element_bytes, is_signed;
  uint64_t infinity;
  int64_t limit;
};

static int cleave_sort_lines(const void *about, int level, const int64_t *sizes,
                             struct cleave_memory *memory);
)c";

const char kSortFunctions[] = R"c(
/* An element: a number in the order of the elements, and where it is from. */
struct cleave_keyed {
  uint64_t key;
  int64_t index;
};

static uint64_t cleave_bits(const void *x, int64_t i, int bytes) {
  switch (bytes) {
    case 1:
      return ((const uint8_t *)x)[i];
    case 2:
      return ((const uint16_t *)x)[i];
    case 4:
      return ((const uint32_t *)x)[i];
    default:
      return ((const uint64_t *)x)[i];
  }
}

static void cleave_set_bits(void *x, int64_t i, int bytes, uint64_t bits) {
  switch (bytes) {
    case 1:
      ((uint8_t *)x)[i] = (uint8_t)bits;
      break;
    case 2:
      ((uint16_t *)x)[i] = (uint16_t)bits;
      break;
    case 4:
      ((uint32_t *)x)[i] = (uint32_t)bits;
      break;
    default:
      ((uint64_t *)x)[i] = bits;
  }
}

/* NaN is the largest number, and the zeros are equal. */
static uint64_t cleave_key(const struct cleave_sort *sort, uint64_t bits) {
  const uint64_t all = UINT64_MAX >> (64 - 8 * sort->element_bytes);
  const uint64_t sign = all / 2 + 1;
  uint64_t key = bits;
  if (sort->infinity != 0) {
    const uint64_t size = bits & (sign - 1);
    if (size > sort->infinity) {
      key = all;
    } else if (size == 0) {
      key = sign;
    } else {
      key = (bits & sign) != 0 ? all - bits : bits | sign;
    }
  } else if (sort->is_signed) {
    key = bits ^ sign;
  }
  return sort->descending ? all - key : key;
}

/* Elements that come one by one, into `line`: the first `count` of them, in
 * order. An equal one that comes later stands behind. */
static void cleave_insert(struct cleave_keyed *line, int64_t *taken,
                          int64_t count, struct cleave_keyed one) {
  int64_t place;
  if (*taken == count && one.key >= line[count - 1].key) return;
  place = *taken < count ? (*taken)++ : count - 1;
  for (; place > 0 && one.key < line[place - 1].key; --place) {
    line[place] = line[place - 1];
  }
  line[place] = one;
}

/* By digits of 8 bits, the lowest first, which keeps equal elements in order.
 * Returns the one of the two that the result is in. */
static struct cleave_keyed *cleave_sort_digits(struct cleave_keyed *line,
                                               struct cleave_keyed *other,
                                               int64_t length, int bytes) {
  int64_t places[8][256], i;
  int d, k;
  memset(places, 0, sizeof places);
  for (i = 0; i < length; ++i) {
    for (d = 0; d < bytes; ++d) ++places[d][line[i].key >> (8 * d) & 255];
  }
  for (d = 0; d < bytes; ++d) {
    struct cleave_keyed *const sorted = other;
    int64_t next = 0;
    /* All have that digit in common. */
    if (places[d][line[0].key >> (8 * d) & 255] == length) continue;
    for (k = 0; k < 256; ++k) {
      const int64_t count = places[d][k];
      places[d][k] = next;
      next += count;
    }
    for (i = 0; i < length; ++i) {
      sorted[places[d][line[i].key >> (8 * d) & 255]++] = line[i];
    }
    other = line;
    line = sorted;
  }
  return line;
}

static int cleave_sort_lines(const void *about, int level, const int64_t *sizes,
                             struct cleave_memory *memory) {
  /* Up to this many are kept in order while the others go by. */
  enum { CLEAVE_FEW = 64 };
  const struct cleave_sort *const sort = (const struct cleave_sort *)about;
  const int bytes = sort->element_bytes;
  const void *const x = memory[sort->x].address;
  const int64_t length = sizes[sort->shape.sizes[sort->axis]];
  const int64_t count = length < sort->limit ? length : sort->limit;
  int64_t lines = 1, stride = 1, l, i;
  struct cleave_keyed *room;
  void *values = NULL;
  int64_t *indices = NULL;
  int axis;
  (void)level;
  for (axis = 0; axis < sort->shape.rank; ++axis) {
    if (axis == sort->axis) continue;
    lines *= sizes[sort->shape.sizes[axis]];
    if (axis > sort->axis) stride *= sizes[sort->shape.sizes[axis]];
  }
  if (lines == 0 || count <= 0) return CLEAVE_OK;
  if (sort->values >= 0) {
    if (!cleave_provide(&memory[sort->values])) return CLEAVE_OUT_OF_MEMORY;
    values = memory[sort->values].address;
  }
  if (sort->indices >= 0) {
    if (!cleave_provide(&memory[sort->indices])) return CLEAVE_OUT_OF_MEMORY;
    indices = (int64_t *)memory[sort->indices].address;
  }
  room = (struct cleave_keyed *)cleave_allocate((size_t)length * 2 *
                                                sizeof *room);
  if (room == NULL) return CLEAVE_OUT_OF_MEMORY;
  for (l = 0; l < lines; ++l) {
    const int64_t first = l / stride * stride * length + l % stride;
    struct cleave_keyed *line = room;
    int64_t taken = 0;
    for (i = 0; i < length; ++i) {
      struct cleave_keyed one;
      one.key = cleave_key(sort, cleave_bits(x, first + i * stride, bytes));
      one.index = i;
      if (count <= CLEAVE_FEW) {
        cleave_insert(line, &taken, count, one);
      } else {
        line[i] = one;
      }
    }
    if (count > CLEAVE_FEW) {
      line = cleave_sort_digits(line, room + length, length, bytes);
    }
    for (i = 0; i < count; ++i) {
      const int64_t at = first + i * stride;
      const int64_t from = first + line[i].index * stride;
      if (values != NULL) {
        cleave_set_bits(values, at, bytes, cleave_bits(x, from, bytes));
      }
      if (indices != NULL) indices[at] = line[i].index;
    }
  }
  cleave_free(room);
  return CLEAVE_OK;
}
)c";

}  // namespace cleave::internal_aot
