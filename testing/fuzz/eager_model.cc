#include "testing/fuzz/eager_model.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace cleave::functional {
namespace {

// Calls fn on each multi-index of `shape`, in row-major order.
void ForEach(const Extents& shape,
             const std::function<void(const Extents&)>& fn) {
  if (CountOf(shape) == 0) return;
  Extents index(shape.size());
  while (true) {
    fn(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

int64_t Offset(const Extents& shape, const Extents& index) {
  int64_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    offset = offset * shape[d] + index[d];
  }
  return offset;
}

std::optional<std::vector<int>> NormalAxes(const std::vector<int>& axes,
                                           size_t rank) {
  std::vector<int> normal;
  const int n = static_cast<int>(rank);
  for (const int axis : axes) {
    if (axis < -n || axis >= n) return std::nullopt;
    normal.push_back(axis < 0 ? axis + n : axis);
    if (std::count(normal.begin(), normal.end(), normal.back()) > 1) {
      return std::nullopt;
    }
  }
  return normal;
}

double Apply(char op, double a, double b) {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    default:
      return b;
  }
}

bool AllZero(const ModelValue& x) {
  return std::all_of(x.numbers.begin(), x.numbers.end(),
                     [](double number) { return number == 0; });
}

// True if the integers `a op b` may be known where an operand fails.
bool MayPass(char op, const ModelValue& a, const ModelValue& b) {
  switch (op) {
    case '-':
      return a.fails && b.fails;
    case '*':
      return (a.fails && AllZero(b)) || (b.fails && AllZero(a));
    default:
      return false;
  }
}

// Python's slice.indices: the places that a slice names.
std::vector<int64_t> PlacesOf(const ModelIndex& slice, int64_t n) {
  const bool forward = slice.step > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? n : n - 1;
  const auto bound = [&](const std::optional<int64_t>& at, int64_t otherwise) {
    if (!at.has_value()) return otherwise;
    return std::clamp(*at < 0 ? *at + n : *at, low, high);
  };
  const int64_t start = bound(slice.start, forward ? low : high);
  const int64_t stop = bound(slice.stop, forward ? high : low);
  std::vector<int64_t> places;
  for (__int128 at = start; forward ? at < stop : at > stop; at += slice.step) {
    places.push_back(static_cast<int64_t>(at));
  }
  return places;
}

}  // namespace

int64_t CountOf(const Extents& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

ModelTensor ModelTensor::Make(DType dtype, Extents shape, ModelValue value) {
  ModelTensor x;
  x.storage = std::make_shared<ModelStorage>();
  x.dtype = dtype;
  x.shape = std::move(shape);
  for (size_t i = 0; i < value.numbers.size(); ++i) {
    x.places.push_back(static_cast<int64_t>(i));
  }
  x.storage->values.push_back(std::move(value));
  return x;
}

ModelValue ModelTensor::Read() const {
  ModelValue value;
  value.fails = storage->now().fails;
  value.may_pass = storage->now().may_pass;
  for (const int64_t place : places) {
    value.numbers.push_back(storage->now().numbers[place]);
  }
  return value;
}

std::optional<Extents> BroadcastOf(const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()), 1);
  for (const Extents* shape : {&a, &b}) {
    const size_t skip = result.size() - shape->size();
    for (size_t d = 0; d < shape->size(); ++d) {
      int64_t& known = result[skip + d];
      if ((*shape)[d] == 1 || (*shape)[d] == known) continue;
      if (known != 1) return std::nullopt;
      known = (*shape)[d];
    }
  }
  return result;
}

std::optional<ModelTensor> BroadcastTo(const ModelTensor& x,
                                       const Extents& shape) {
  if (BroadcastOf(x.shape, shape) != shape) return std::nullopt;
  ModelTensor y = x;
  y.shape = shape;
  y.is_broadcast |= shape != x.shape;
  y.places.clear();
  const size_t skip = shape.size() - x.shape.size();
  ForEach(shape, [&](const Extents& index) {
    Extents from(index.begin() + static_cast<int64_t>(skip), index.end());
    for (size_t d = 0; d < from.size(); ++d) {
      if (x.shape[d] == 1) from[d] = 0;
    }
    y.places.push_back(x.places[Offset(x.shape, from)]);
  });
  return y;
}

std::optional<ModelTensor> Reshape(const ModelTensor& x, Extents shape) {
  const int64_t all = static_cast<int64_t>(x.places.size());
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    *open = 1;
    if (std::find(shape.begin(), shape.end(), -1) != shape.end()) {
      return std::nullopt;
    }
    const int64_t others = CountOf(shape);
    if (others < 1) return std::nullopt;
    *open = all / others;
  }
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
  }
  if (CountOf(shape) != all) return std::nullopt;
  ModelTensor y = x;
  y.shape = std::move(shape);
  return y;
}

std::optional<ModelTensor> Transpose(const ModelTensor& x,
                                     const std::vector<int>& axes) {
  const auto normal = NormalAxes(axes, x.shape.size());
  if (!normal || normal->size() != x.shape.size()) return std::nullopt;
  ModelTensor y = x;
  for (size_t d = 0; d < normal->size(); ++d) {
    y.shape[d] = x.shape[(*normal)[d]];
  }
  y.places.clear();
  ForEach(y.shape, [&](const Extents& index) {
    Extents from(index.size());
    for (size_t d = 0; d < index.size(); ++d) from[(*normal)[d]] = index[d];
    y.places.push_back(x.places[Offset(x.shape, from)]);
  });
  return y;
}

std::optional<ModelTensor> Reverse(const ModelTensor& x,
                                   const std::vector<int>& axes) {
  const auto normal = NormalAxes(axes, x.shape.size());
  if (!normal) return std::nullopt;
  ModelTensor y = x;
  y.places.clear();
  ForEach(y.shape, [&](const Extents& index) {
    Extents from = index;
    for (const int axis : *normal) from[axis] = x.shape[axis] - 1 - from[axis];
    y.places.push_back(x.places[Offset(x.shape, from)]);
  });
  return y;
}

Index ModelIndex::ToIndex() const {
  const auto dim = [](const std::optional<int64_t>& at) {
    return at.has_value() ? std::optional<Dim>(*at) : std::nullopt;
  };
  switch (kind) {
    case Kind::kElement:
      return Index(element);
    case Kind::kSlice:
      return Index(dim(start), dim(stop), step);
    case Kind::kEllipsis:
      return kEllipsis;
    case Kind::kNewAxis:
      return kNewAxis;
  }
  return kNewAxis;
}

std::optional<ModelTensor> At(const ModelTensor& x,
                              const std::vector<ModelIndex>& indices) {
  using Kind = ModelIndex::Kind;
  size_t taken = 0, ellipses = 0;
  for (const ModelIndex& index : indices) {
    ellipses += index.kind == Kind::kEllipsis;
    taken += index.kind == Kind::kElement || index.kind == Kind::kSlice;
  }
  if (taken > x.shape.size() || ellipses > 1) return std::nullopt;
  // Per axis of x, its places; and where the axes of the result come from.
  std::vector<std::vector<int64_t>> chosen;
  ModelTensor y = x;
  y.shape.clear();
  y.places.clear();
  std::vector<int> from;  // -1: a new axis
  const auto keep = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const int64_t n = x.shape[chosen.size()];
      from.push_back(static_cast<int>(chosen.size()));
      y.shape.push_back(n);
      chosen.emplace_back();
      for (int64_t at = 0; at < n; ++at) chosen.back().push_back(at);
    }
  };
  for (const ModelIndex& index : indices) {
    if (index.kind == Kind::kEllipsis) {
      keep(x.shape.size() - taken);
    } else if (index.kind == Kind::kNewAxis) {
      from.push_back(-1);
      y.shape.push_back(1);
    } else if (index.kind == Kind::kElement) {
      const int64_t n = x.shape[chosen.size()];
      if (index.element < -n || index.element >= n) return std::nullopt;
      chosen.push_back({index.element < 0 ? index.element + n : index.element});
    } else {
      if (index.step == 0) return std::nullopt;
      from.push_back(static_cast<int>(chosen.size()));
      chosen.push_back(PlacesOf(index, x.shape[chosen.size()]));
      y.shape.push_back(static_cast<int64_t>(chosen.back().size()));
    }
  }
  if (ellipses == 0) keep(x.shape.size() - taken);
  ForEach(y.shape, [&](const Extents& index) {
    Extents place(x.shape.size());
    for (size_t d = 0; d < place.size(); ++d) {
      if (!chosen[d].empty()) place[d] = chosen[d][0];
    }
    for (size_t d = 0; d < index.size(); ++d) {
      if (from[d] >= 0) place[from[d]] = chosen[from[d]][index[d]];
    }
    y.places.push_back(x.places[Offset(x.shape, place)]);
  });
  return y;
}

std::optional<ModelTensor> Combine(char op, const ModelTensor& x,
                                   const ModelTensor& y) {
  if (x.dtype != y.dtype) return std::nullopt;
  const auto shape = BroadcastOf(x.shape, y.shape);
  if (!shape) return std::nullopt;
  const ModelValue a = BroadcastTo(x, *shape)->Read();
  const ModelValue b = BroadcastTo(y, *shape)->Read();
  ModelValue value;
  value.fails = a.fails || b.fails;
  value.may_pass =
      a.may_pass || b.may_pass || (x.dtype == DType::kI64 && MayPass(op, a, b));
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    value.numbers.push_back(Apply(op, a.numbers[i], b.numbers[i]));
  }
  return ModelTensor::Make(x.dtype, *shape, std::move(value));
}

bool Write(char op, const ModelTensor& x, const ModelTensor& y, bool at_once) {
  if (x.is_broadcast || x.dtype != y.dtype) return false;
  const auto same = BroadcastTo(y, x.shape);
  if (!same) return false;
  const ModelValue value = same->Read();
  const ModelValue& old = x.storage->now();
  ModelValue now = old;
  // A write of the whole that does not read it does not depend on it.
  const bool replaces = op == '=' && x.places.size() == old.numbers.size();
  now.fails = value.fails || (old.fails && !replaces);
  now.may_pass = value.may_pass || (old.may_pass && !replaces) ||
                 (x.dtype == DType::kI64 && MayPass(op, x.Read(), value));
  for (size_t i = 0; i < x.places.size(); ++i) {
    double& number = now.numbers[x.places[i]];
    number = Apply(op, number, value.numbers[i]);
  }
  if (at_once && now.fails) return false;
  x.storage->values.push_back(std::move(now));
  return true;
}

Settled Settle(ModelStorage& storage) {
  for (const ModelValue& value : storage.values) {
    if (value.may_pass) return Settled::kUnknown;
  }
  while (storage.values.size() > 1 && storage.values.back().fails) {
    storage.values.pop_back();
  }
  storage.values = {storage.values.back()};
  return storage.values.back().fails ? Settled::kLost : Settled::kValue;
}

}  // namespace cleave::functional
