#include "passes/expand_batch_norm.h"


#include "base/try.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

/// The arithmetic of one batch norm, in the type in which it is done.
class Norm {
 public:
  /// `sizes`: what counts of the arrays.
  Norm(Instruction& i, DimSizes sizes) : i_(i), make_(i), attr_(i.attr<hlo::BatchNormAttr>()), sizes_(std::move(sizes)) {
    const Shape& x = i.operand(0)->shape();
    type_ = bit_width(x.dtype()) < 32 ? DType::F32 : x.dtype();
    dims_ = x.dims();
    for (std::int64_t d = 0; d < x.rank(); ++d)
      if (d != attr_.feature_index) others_.push_back(d);
  }

  Instruction* expanded() {
    switch (i_.opcode()) {
      case Opcode::BatchNormTraining: return training();
      case Opcode::BatchNormInference: return inference();
      default: return grad();
    }
  }

 private:

  Instruction* training() {
    Instruction* x = wide(0);
    Instruction* mean = average(x);
    Instruction* difference = make_.binary(Opcode::Subtract, x, spread(mean));
    Instruction* variance = average(make_.binary(Opcode::Multiply, difference, difference));
    return make_.tuple({narrow(normalized(difference, variance)), narrow(mean), narrow(variance)});
  }

  Instruction* inference() {
    Instruction* difference = make_.binary(Opcode::Subtract, wide(0), spread(wide(3)));
    return narrow(normalized(difference, wide(4)));
  }

  // x̂ = (x - mean) / sqrt(variance + ε); doffset = Σ dy; dscale = Σ dy·x̂;
  // dx = scale / sqrt(variance + ε) · (dy - doffset/n - x̂·dscale/n)
  Instruction* grad() {
    Instruction* deviation = root(wide(3));
    Instruction* hat = make_.binary(Opcode::Divide, make_.binary(Opcode::Subtract, wide(0), spread(wide(2))),
                                    spread(deviation));
    Instruction* dy = wide(4);
    Instruction* offset = sum(dy);
    Instruction* scale = sum(make_.binary(Opcode::Multiply, dy, hat));
    Instruction* rest = make_.binary(Opcode::Subtract, dy, spread(over_count(offset)));
    rest = make_.binary(Opcode::Subtract, rest, make_.binary(Opcode::Multiply, hat, spread(over_count(scale))));
    Instruction* factor = make_.binary(Opcode::Divide, wide(1), deviation);
    Instruction* dx = make_.binary(Opcode::Multiply, spread(factor), rest);
    return make_.tuple({narrow(dx), narrow(scale), narrow(offset)});
  }

  Instruction* number(double value, const Dims& dims) { return make_.splat(literal(value), dims); }
  hlo::Literal literal(double value) const {
    hlo::Literal result(Shape::scalar(type_));
    if (type_ == DType::F32)
      result.mutable_data<float>()[0] = static_cast<float>(value);
    else
      result.mutable_data<double>()[0] = value;
    return result;
  }

  Instruction* wide(std::int64_t operand) { return make_.convert(i_.operand(operand), type_); }
  Instruction* narrow(Instruction* a) { return make_.convert(a, i_.operand(0)->shape().dtype()); }
  Instruction* spread(Instruction* feature) { return make_.broadcast(feature, dims_, {attr_.feature_index}); }
  Instruction* sum(Instruction* x) {
    return make_.reduce(Opcode::Add, masked(make_, x, sizes_, number(0, {})), number(0, {}), others_);
  }
  Instruction* over_count(Instruction* total) { return make_.binary(Opcode::Divide, total, count(total->shape().dims())); }
  // How many elements a feature has.
  Instruction* count(const Dims& dims) {
    double known = 1;
    Instruction* sized = nullptr;
    for (const std::int64_t d : others_) {
      Instruction* size = sizes_[static_cast<std::size_t>(d)];
      if (size == nullptr) {
        known *= static_cast<double>(dims_[static_cast<std::size_t>(d)]);
        continue;
      }
      size = make_.convert(size, DType::S64);
      sized = sized == nullptr ? size : make_.binary(Opcode::Multiply, sized, size);
    }
    if (sized == nullptr) return number(known, dims);
    sized = make_.binary(Opcode::Multiply, sized, make_.integer(DType::S64, static_cast<std::int64_t>(known)));
    return make_.broadcast_scalar(make_.convert(sized, type_), dims);
  }
  Instruction* average(Instruction* x) { return over_count(sum(x)); }
  // Epsilon is an f32, whatever the element type.
  Instruction* root(Instruction* variance) {
    Instruction* epsilon = number(static_cast<double>(static_cast<float>(attr_.epsilon)), variance->shape().dims());
    return make_.unary(Opcode::Sqrt, make_.binary(Opcode::Add, variance, epsilon));
  }
  // scale · (x - mean) / sqrt(variance + ε) + offset
  Instruction* normalized(Instruction* difference, Instruction* variance) {
    Instruction* scaled = make_.binary(Opcode::Multiply, spread(wide(1)), difference);
    return make_.binary(Opcode::Add, make_.binary(Opcode::Divide, scaled, spread(root(variance))), spread(wide(2)));
  }

  Instruction& i_;
  Make make_;
  const hlo::BatchNormAttr& attr_;
  DType type_;
  Dims dims_, others_;
  DimSizes sizes_;
};

Expected<Instruction*> whole(Instruction& i) {
  return expanded_batch_norm(i, DimSizes(static_cast<std::size_t>(i.operand(0)->shape().rank()), nullptr));
}

}  // namespace

Instruction* expanded_batch_norm(Instruction& i, const DimSizes& sizes) { return Norm(i, sizes).expanded(); }

Expected<Changed> expand_batch_norm(hlo::Module& module) {
  auto changed = TRY(expand(module, Opcode::BatchNormTraining, whole));
  const Changed inferences = TRY(expand(module, Opcode::BatchNormInference, whole));
  const Changed gradients = TRY(expand(module, Opcode::BatchNormGrad, whole));
  return changed | inferences | gradients;
}

}  // namespace hloom::passes
