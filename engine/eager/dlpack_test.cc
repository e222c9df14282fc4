#include "engine/eager/dlpack.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "engine/eager/functional_testing.h"
#include "engine/eager/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;

// A producer that counts the calls of its deleter.
class Producer {
 public:
  Producer(std::vector<int64_t> shape, std::vector<int64_t> strides)
      : shape_(std::move(shape)), strides_(std::move(strides)) {
    managed_.dl_tensor.data = memory_;
    managed_.dl_tensor.device = {kDLCPU, 0};
    managed_.dl_tensor.ndim = static_cast<int>(shape_.size());
    managed_.dl_tensor.dtype = {kDLFloat, 32, 1};
    managed_.dl_tensor.shape = shape_.data();
    managed_.dl_tensor.strides = strides_.empty() ? nullptr : strides_.data();
    managed_.manager_ctx = this;
    managed_.deleter = [](DLManagedTensor* self) {
      ++static_cast<Producer*>(self->manager_ctx)->deleted_;
    };
    for (int i = 0; i < 32; ++i) memory_[i] = static_cast<float>(i);
  }

  DLTensor& tensor() { return managed_.dl_tensor; }
  DLManagedTensor* managed() { return &managed_; }
  float* memory() { return memory_; }
  int deleted() const { return deleted_; }

 private:
  alignas(64) float memory_[32];
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  DLManagedTensor managed_ = {};
  int deleted_ = 0;
};

std::vector<double> Values(const Tensor& x) {
  std::vector<double> values;
  const absl::StatusOr<cleave::Tensor> tensor = x.Concrete();
  EXPECT_OK(tensor);
  for (int64_t i = 0; tensor.ok() && i < tensor->size(); ++i) {
    values.push_back(tensor->GetDouble(i));
  }
  return values;
}

const void* DataOf(const Tensor& x) { return x.Concrete()->data(); }

TEST(Dlpack, SharesDenseAlignedMemoryUntilItsLastUse) {
  Producer producer({2, 3}, {});
  {
    Tensor kept;
    {
      const Tensor x = FromDlpack(producer.managed());
      EXPECT_EQ(x.ToString(), "f32[2, 3] [0, 1, 2, 3, 4, 5]");
      EXPECT_EQ(DataOf(x), producer.memory());
      kept = x[{1}];
    }
    EXPECT_EQ(producer.deleted(), 0);
    EXPECT_EQ(Values(kept), (std::vector<double>{3, 4, 5}));
  }
  EXPECT_EQ(producer.deleted(), 1);
}

TEST(Dlpack, StridesOfARowMajorArrayAreDense) {
  // The stride of an extent of 1 says nothing.
  Producer producer({1, 2, 3}, {INT64_MAX, 3, 1});
  const Tensor x = FromDlpack(producer.managed());
  EXPECT_EQ(DataOf(x), producer.memory());
}

TEST(Dlpack, CopiesWhatIsStridedOrNotAligned) {
  Producer transposed({3, 2}, {1, 3});
  const Tensor x = FromDlpack(transposed.managed());
  EXPECT_EQ(transposed.deleted(), 1);
  EXPECT_EQ(Values(x), (std::vector<double>{0, 3, 1, 4, 2, 5}));

  Producer reversed({4}, {-1});
  reversed.tensor().byte_offset = 12;
  EXPECT_EQ(Values(FromDlpack(reversed.managed())),
            (std::vector<double>{3, 2, 1, 0}));
  Producer repeated({2, 2}, {0, 1});
  EXPECT_EQ(Values(FromDlpack(repeated.managed())),
            (std::vector<double>{0, 1, 0, 1}));

  Producer shifted({2}, {});
  shifted.tensor().byte_offset = 4;
  const Tensor y = FromDlpack(shifted.managed());
  EXPECT_EQ(shifted.deleted(), 1);
  EXPECT_EQ(Values(y), (std::vector<double>{1, 2}));

  Producer aligned({2}, {});
  aligned.tensor().byte_offset = 64;
  const Tensor z = FromDlpack(aligned.managed());
  EXPECT_EQ(DataOf(z), aligned.memory() + 16);
  EXPECT_EQ(Values(z), (std::vector<double>{16, 17}));
}

TEST(Dlpack, ScalarsAndEmptyArraysPass) {
  Producer scalar({}, {});
  EXPECT_THAT(FromDlpack(scalar.managed()).Item(), IsOkAndHolds(0));
  EXPECT_EQ(scalar.deleted(), 1);
  Producer empty({3, 0}, {});
  empty.tensor().data = nullptr;
  EXPECT_EQ(FromDlpack(empty.managed()).shape(), (Shape{3, 0}));
  EXPECT_EQ(empty.deleted(), 1);
}

TEST(Dlpack, RefusesWhatItCannotTakeAndReleasesIt) {
  const auto expect = [](const std::function<void(Producer&)>& change,
                         absl::StatusCode code, const char* message) {
    Producer producer({2, 3}, {3, 1});
    change(producer);
    const Tensor x = FromDlpack(producer.managed());
    EXPECT_THAT(x.status(), StatusIs(code, HasSubstr(message)));
    EXPECT_EQ(producer.deleted(), 1);
  };
  using Code = absl::StatusCode;
  expect(
      [](Producer& p) {
        p.tensor().device = {kDLCUDA, 0};
      },
      Code::kUnimplemented, "device type 2");
  expect(
      [](Producer& p) {
        p.tensor().dtype = {kDLFloat, 32, 4};
      },
      Code::kUnimplemented, "4 lanes");
  expect(
      [](Producer& p) {
        p.tensor().dtype = {kDLOpaqueHandle, 64, 1};
      },
      Code::kUnimplemented, "code 3");
  expect(
      [](Producer& p) {
        p.tensor().dtype = {kDLInt, 4, 1};
      },
      Code::kUnimplemented, "4 bits");
  expect([](Producer& p) { p.tensor().data = nullptr; }, Code::kInvalidArgument,
         "no memory");
  expect([](Producer& p) { p.tensor().shape[0] = -1; }, Code::kInvalidArgument,
         "extent -1");
  expect([](Producer& p) { p.tensor().shape[0] = int64_t{1} << 62; },
         Code::kResourceExhausted, "elements");
  expect([](Producer& p) { p.tensor().strides[0] = INT64_MAX; },
         Code::kInvalidArgument, "address space");
  EXPECT_FALSE(FromDlpack(nullptr).valid());
}

TEST(Dlpack, AProducerMayHaveNoDeleter) {
  Producer producer({2}, {});
  producer.managed()->deleter = nullptr;
  EXPECT_TRUE(FromDlpack(producer.managed()).valid());
}

TEST(Dlpack, GoesOutWithoutACopy) {
  const Tensor x =
      cleave::Tensor::FromDoubles(DType::kF64, {2, 2}, {1, 2, 3, 4});
  ASSERT_OK_AND_ASSIGN(DLManagedTensor* const out, ToDlpack(x));
  EXPECT_EQ(out->dl_tensor.data, DataOf(x));
  EXPECT_EQ(out->dl_tensor.ndim, 2);
  EXPECT_EQ(out->dl_tensor.shape[1], 2);
  EXPECT_EQ(out->dl_tensor.strides[0], 2);
  EXPECT_EQ(out->dl_tensor.strides[1], 1);
  EXPECT_EQ(out->dl_tensor.device.device_type, kDLCPU);
  EXPECT_EQ(out->dl_tensor.byte_offset, 0u);
  EXPECT_EQ(out->dl_tensor.dtype.code, kDLFloat);
  EXPECT_EQ(out->dl_tensor.dtype.bits, 64);
  // In again: the memory lives as long as either needs it.
  Tensor again = FromDlpack(out);
  EXPECT_EQ(DataOf(again), DataOf(x));
  EXPECT_FALSE(again.SharesStorage(x));
}

TEST(Dlpack, OutlivesTheTensorItCameFrom) {
  DLManagedTensor* out = nullptr;
  {
    const Tensor x = cleave::Tensor::FromDoubles(DType::kF32, {3}, {1, 2, 3});
    ASSERT_OK_AND_ASSIGN(out, ToDlpack(x[{{kNone, kNone, -1}}]));
  }
  float values[3];
  std::memcpy(values, out->dl_tensor.data, sizeof(values));
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[2], 1);
  out->deleter(out);
}

class DlpackSessionTest : public SessionTest {};

TEST_F(DlpackSessionTest, OpsReadTheMemoryAndWritesLeaveIt) {
  Producer producer({2, 3}, {});
  Tensor x = FromDlpack(producer.managed());
  ASSERT_EQ(DataOf(x), producer.memory());
  EXPECT_EQ(Values(x + 1), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  x[{kAll, 0}] += 10;
  EXPECT_EQ(Values(x), (std::vector<double>{10, 1, 2, 13, 4, 5}));
  EXPECT_EQ(producer.memory()[0], 0);
  EXPECT_NE(DataOf(x), producer.memory());
  EXPECT_EQ(producer.deleted(), 1);  // the new value is elsewhere
  // A value that waits is computed when it goes out.
  ASSERT_OK(SetEagerMode(EagerMode::kLazy));
  ASSERT_OK_AND_ASSIGN(DLManagedTensor* const out, ToDlpack(x * 2));
  EXPECT_EQ(static_cast<const float*>(out->dl_tensor.data)[0], 20);
  out->deleter(out);
}

TEST(Dlpack, DTypesAreThoseOfBoth) {
  for (const DType dtype : AllDTypes()) {
    const absl::StatusOr<DLDataType> type = ToDlpackType(dtype);
    if (dtype == DType::kKey) {
      EXPECT_THAT(type, StatusIs(absl::StatusCode::kUnimplemented));
      EXPECT_FALSE(ToDlpack(cleave::Tensor(dtype, {1})).ok());
      continue;
    }
    ASSERT_OK(type) << DTypeName(dtype);
    EXPECT_EQ(type->bits, 8 * ByteSize(dtype));
    // Bool goes out as u8.
    EXPECT_THAT(FromDlpackType(*type),
                IsOkAndHolds(dtype == DType::kBool ? DType::kU8 : dtype));
  }
  // As later versions of DLPack say it.
  EXPECT_THAT(FromDlpackType({6, 8, 1}), IsOkAndHolds(DType::kBool));
  EXPECT_THAT(FromDlpackType({4, 16, 1}), IsOkAndHolds(DType::kBF16));
}

}  // namespace
}  // namespace cleave::functional
