#include "tools/oracle/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "ops/status_macros.h"

namespace cleave {
namespace {

// More than any sample has.
constexpr uint64_t kMostBytes = uint64_t{1} << 36;

void PutNumber(std::string& bytes, int64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void PutText(std::string& bytes, absl::string_view text) {
  PutNumber(bytes, static_cast<int64_t>(text.size()));
  bytes.append(text.data(), text.size());
}

void PutType(std::string& bytes, DType dtype,
             const std::vector<int64_t>& shape) {
  PutNumber(bytes, static_cast<int64_t>(dtype));
  PutNumber(bytes, static_cast<int64_t>(shape.size()));
  for (const int64_t extent : shape) PutNumber(bytes, extent);
}

size_t BytesOf(const Tensor& tensor) {
  return static_cast<size_t>(tensor.size()) * ByteSize(tensor.dtype());
}

void PutTensor(std::string& bytes, const Tensor& tensor) {
  PutType(bytes, tensor.dtype(), tensor.shape());
  PutText(bytes,
          {reinterpret_cast<const char*>(tensor.data()), BytesOf(tensor)});
}

// Takes values from the front of bytes. A value that is not there is 0 or
// empty, and `ok` false from then on.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  int64_t Number() {
    int64_t number = 0;
    const absl::string_view from = Take(sizeof(number));
    if (ok_) std::memcpy(&number, from.data(), sizeof(number));
    return number;
  }

  absl::string_view Text() { return Take(Number()); }

  // How many follow, each of at least `least` bytes.
  int64_t Count(int64_t least) {
    const int64_t count = Number();
    ok_ &= count >= 0 && count <= static_cast<int64_t>(bytes_.size()) / least;
    return ok_ ? count : 0;
  }

  std::pair<DType, std::vector<int64_t>> Type() {
    const int64_t number = Number();
    DType dtype = DType::kBool;
    bool known = false;
    for (const DType one : AllDTypes()) {
      if (static_cast<int64_t>(one) != number) continue;
      dtype = one;
      known = true;
    }
    ok_ &= known;
    std::vector<int64_t> shape(Count(sizeof(int64_t)));
    for (int64_t& extent : shape) extent = Number();
    return {dtype, std::move(shape)};
  }

  absl::StatusOr<Tensor> TakeTensor() {
    auto [dtype, shape] = Type();
    const absl::string_view elements = Text();
    CLEAVE_RETURN_IF_ERROR(status());
    CLEAVE_ASSIGN_OR_RETURN(Tensor tensor,
                            Tensor::Create(dtype, std::move(shape)));
    ok_ &= elements.size() == BytesOf(tensor);
    CLEAVE_RETURN_IF_ERROR(status());
    if (!elements.empty()) {
      std::memcpy(tensor.mutable_data(), elements.data(), elements.size());
    }
    return tensor;
  }

  absl::Status status() const {
    return ok_ ? absl::OkStatus()
               : absl::InvalidArgumentError("a message that is none");
  }

 private:
  absl::string_view Take(int64_t size) {
    ok_ &= size >= 0 && size <= static_cast<int64_t>(bytes_.size());
    if (!ok_) return {};
    const absl::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  absl::string_view bytes_;
  bool ok_ = true;
};

std::vector<int64_t> Numbers(const Shape& shape) {
  std::vector<int64_t> numbers;
  for (const Dim& extent : shape) numbers.push_back(extent.Value().value_or(0));
  return numbers;
}

}  // namespace

std::string Serialize(const OracleCall& call) {
  std::string bytes;
  PutText(bytes, call.op);
  PutText(bytes, call.attributes);
  PutNumber(bytes, static_cast<int64_t>(call.inputs.size()));
  for (const Tensor& input : call.inputs) PutTensor(bytes, input);
  PutNumber(bytes, static_cast<int64_t>(call.results.size()));
  for (const TensorType& type : call.results) {
    PutType(bytes, type.dtype, Numbers(type.shape));
  }
  return bytes;
}

std::string Serialize(const OracleReply& reply) {
  std::string bytes;
  PutNumber(bytes, static_cast<int64_t>(reply.status().code()));
  PutText(bytes, reply.status().message());
  if (!reply.ok()) return bytes;
  PutNumber(bytes, static_cast<int64_t>(reply->size()));
  for (const Tensor& result : *reply) PutTensor(bytes, result);
  return bytes;
}

absl::StatusOr<OracleCall> ParseOracleCall(absl::string_view bytes) {
  Reader reader(bytes);
  OracleCall call;
  call.op = std::string(reader.Text());
  call.attributes = std::string(reader.Text());
  for (int64_t left = reader.Count(sizeof(int64_t)); left > 0; --left) {
    CLEAVE_ASSIGN_OR_RETURN(Tensor input, reader.TakeTensor());
    call.inputs.push_back(std::move(input));
  }
  for (int64_t left = reader.Count(sizeof(int64_t)); left > 0; --left) {
    const auto [dtype, shape] = reader.Type();
    call.results.push_back({dtype, Shape(shape.begin(), shape.end())});
  }
  CLEAVE_RETURN_IF_ERROR(reader.status());
  return call;
}

absl::StatusOr<OracleReply> ParseOracleReply(absl::string_view bytes) {
  Reader reader(bytes);
  const auto code = static_cast<absl::StatusCode>(reader.Number());
  const std::string message(reader.Text());
  CLEAVE_RETURN_IF_ERROR(reader.status());
  if (code != absl::StatusCode::kOk) {
    return OracleReply(absl::Status(code, message));
  }
  std::vector<Tensor> results;
  for (int64_t left = reader.Count(sizeof(int64_t)); left > 0; --left) {
    CLEAVE_ASSIGN_OR_RETURN(Tensor result, reader.TakeTensor());
    results.push_back(std::move(result));
  }
  CLEAVE_RETURN_IF_ERROR(reader.status());
  return OracleReply(std::move(results));
}

absl::Status WriteMessage(int descriptor, absl::string_view bytes) {
  const uint64_t size = bytes.size();
  std::string all(reinterpret_cast<const char*>(&size), sizeof(size));
  all.append(bytes.data(), bytes.size());
  for (size_t done = 0; done < all.size();) {
    // A process that ended is no signal here.
    const ssize_t sent =
        send(descriptor, all.data() + done, all.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return absl::UnavailableError("the other end is closed");
    done += sent;
  }
  return absl::OkStatus();
}

namespace {

absl::Status ReadBytes(int descriptor, char* to, size_t size,
                       OracleDeadline deadline) {
  for (size_t done = 0; done < size;) {
    if (deadline.has_value()) {
      const int64_t left =
          std::chrono::duration_cast<std::chrono::milliseconds>(
              *deadline - std::chrono::steady_clock::now())
              .count();
      pollfd wait = {descriptor, POLLIN, 0};
      const int ready =
          poll(&wait, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60000)));
      if (ready < 0 && errno != EINTR) {
        return absl::UnavailableError("the other end is closed");
      }
      if (ready <= 0) {
        if (std::chrono::steady_clock::now() < *deadline) continue;
        return absl::DeadlineExceededError("no reply in time");
      }
    }
    const ssize_t got = read(descriptor, to + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::UnavailableError("the other end is closed");
    done += got;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadMessage(int descriptor,
                                        OracleDeadline deadline) {
  uint64_t size = 0;
  CLEAVE_RETURN_IF_ERROR(ReadBytes(descriptor, reinterpret_cast<char*>(&size),
                                   sizeof(size), deadline));
  if (size > kMostBytes) {
    return absl::InvalidArgumentError("a message that is none");
  }
  std::string bytes(size, '\0');
  CLEAVE_RETURN_IF_ERROR(ReadBytes(descriptor, &bytes[0], size, deadline));
  return bytes;
}

}  // namespace cleave
