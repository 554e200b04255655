// What targets take and give, and how a call is made of that.
//
// A pattern lists buffers as a type and the letters of their last dimensions: T is the type of the target's letter, R its
// real part, C the complex type of its parts, I s32, E s32 too and LAPACK's info, W work memory of older releases that
// nobody reads. Two letters are a matrix, column by column in memory; all other dimensions are batch and row-major. A
// letter means one size throughout; s is the smaller of m and n, d is n - 1. `@3` gives the buffer's number where it is
// not its place in operands, then results.
#include "library/lapack.h"

#include <algorithm>
#include <map>

#include "base/fail.h"
#include "base/try.h"
#include "library/lapack_call.h"

namespace hloom::library {
namespace {

class Planner;
using Settings = Expected<> (*)(Planner&);

struct Target {
  std::string_view real, complex;  // names, without prefix, letter and suffix
  const LapackRoutine* routine;
  std::string_view operands;
  std::string_view real_results, complex_results;
  Settings settings;
};

struct OlderTarget {
  std::string_view real;
  std::int64_t num_scalars;
  std::string_view operands, real_results, complex_results;  // empty: those of the present form
};

// A buffer of a pattern.
struct Token {
  char type = 'T';
  std::string_view letters;
  int number = -1;
};

class Planner {
 public:
  Planner(const CustomCallProblem& problem, const Target& target, const OlderTarget* older, std::size_t type)
      : problem_(problem), target_(target), older_(older), type_(type) {}

  Expected<RoutinePlan> plan() {
    if (target_.routine != &kSolvePerturbed) TRY(want_lapack());
    TRY(match_all());
    set_sizes();
    TRY(target_.settings(*this));
    target_.routine->queries[type_](call);
    return finish();
  }

  Expected<LapackLayouts> layouts() {
    for (const Shape& s : problem_.operands) layouts_.operands.push_back(Layout::descending(s.rank()));
    for (const Shape& s : problem_.results) layouts_.results.push_back(Layout::descending(s.rank()));
    checks_layouts_ = false;
    TRY(match_all());
    return std::move(layouts_);
  }

  // For the settings of a target.
  LapackCall call;
  bool is_older() const { return older_ != nullptr; }
  bool is_complex() const { return type_ >= 2; }
  std::int64_t size(char letter) const {
    const auto found = sizes_.find(letter);
    return found == sizes_.end() ? 0 : found->second;
  }
  Expected<std::int64_t> scalar(std::size_t i) const {
    if (i < problem_.scalars.size() && problem_.scalars[i]) return *problem_.scalars[i];
    return wrong("operand ", i, " must be a constant");
  }
  Expected<std::int64_t> integer(std::string_view name) const {
    const auto value = problem_.attributes.integer(name);
    if (!value) return wrong("has no attribute ", name);
    return *value;
  }
  /// An attribute that is one of these letters.
  Expected<char> letter(std::string_view name, std::string_view allowed) const {
    const std::int64_t value = TRY(integer(name));
    return one_of(value, name, allowed);
  }
  Expected<char> one_of(std::int64_t value, std::string_view name, std::string_view allowed) const {
    const char c = value > 0 && value < 127 ? static_cast<char>(value) : '?';
    if (allowed.find(c) == std::string_view::npos)
      return wrong("attribute ", name, " is ", value, ", must be one of the letters ", allowed);
    return c;
  }
  template <typename... Parts>
  Error wrong(const Parts&... parts) const {
    return fail(Code::InvalidArgument, problem_.target, ": ", parts...);
  }
  Expected<> want(bool holds, std::string_view what) const {
    if (!holds) return wrong("sizes do not fit: ", what);
    return {};
  }

 private:
  static std::vector<Token> tokens_of(std::string_view pattern) {
    std::vector<Token> tokens;
    while (!pattern.empty()) {
      const std::size_t end = std::min(pattern.find(' '), pattern.size());
      std::string_view word = pattern.substr(0, end);
      pattern.remove_prefix(std::min(end + 1, pattern.size()));
      Token token;
      token.type = word[0];
      word.remove_prefix(1);
      if (const std::size_t at = word.find('@'); at != std::string_view::npos) {
        token.number = word[at + 1] - '0';
        word = word.substr(0, at);
      }
      token.letters = word;
      tokens.push_back(token);
    }
    return tokens;
  }

  std::string_view results_pattern() const {
    const std::string_view older = older_ == nullptr ? "" : is_complex() ? older_->complex_results : older_->real_results;
    if (!older.empty()) return older;
    return is_complex() && !target_.complex_results.empty() ? target_.complex_results : target_.real_results;
  }

  Expected<> match_all() {
    const std::size_t scalars = older_ == nullptr ? 0 : static_cast<std::size_t>(older_->num_scalars);
    const auto operands = tokens_of(older_ != nullptr && !older_->operands.empty() ? older_->operands : target_.operands);
    if (problem_.operands.size() != scalars + operands.size())
      return wrong("takes ", scalars + operands.size(), " operands, found ", problem_.operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i)
      TRY(match(operands[i], problem_.operands[scalars + i], "operand", scalars + i,
                operands[i].number >= 0 ? operands[i].number : static_cast<int>(i)));
    num_pointers_ = static_cast<std::int32_t>(problem_.operands.size());
    num_buffers_ = static_cast<int>(tokens_of(target_.operands).size());
    return match_results(tokens_of(results_pattern()));
  }

  // Some releases give more than the pattern has: info, if that has none, and work memory, which nobody reads.
  Expected<> match_results(const std::vector<Token>& results) {
    if (problem_.results.size() < results.size())
      return wrong("gives ", results.size(), " results, found ", problem_.results.size());
    int number = num_buffers_;
    bool has_info = false;
    for (std::size_t i = 0; i < problem_.results.size(); ++i) {
      const bool extra = i >= results.size();
      Token token = extra ? Token{'W', {}, -1} : results[i];
      if (extra && !has_info && problem_.results[i].dtype() == DType::S32 && problem_.results[i].dims() == batch_) token.type = 'E';
      has_info |= token.type == 'E';
      if (token.type == 'W') continue;
      const int at = token.number >= 0 ? num_buffers_ + token.number : number++;
      if (token.type == 'E') call.info = at;
      TRY(match(token, problem_.results[i], "result", i, at));
    }
    return {};
  }

  DType element() const {
    constexpr DType kTypes[] = {DType::F32, DType::F64, DType::C64, DType::C128};
    return kTypes[type_];
  }
  DType type_of(char type) const {
    if (type == 'I' || type == 'E') return DType::S32;
    if (type == 'R') return real_type(element());
    if (type == 'C') return real_type(element()) == DType::F32 ? DType::C64 : DType::C128;
    return element();
  }

  Expected<> match(const Token& token, const Shape& shape, const char* what, std::size_t place, int number) {
    const auto rank = static_cast<std::int64_t>(token.letters.size());
    const bool in_batch = token.type != 'S';  // a scalar for the whole batch
    if (!shape.is_array() || shape.dtype() != type_of(token.type) || shape.rank() < rank)
      return wrong(what, " ", place, " is ", to_string(shape, false), ", must be ", rank, " or more dimensions of ", type_of(token.type));
    const Dims batch(shape.dims().begin(), shape.dims().end() - rank);
    if (!in_batch && shape.rank() != 0) return wrong(what, " ", place, " is ", to_string(shape, false), ", must be a scalar");
    if (in_batch && !batch_known_) batch_ = batch;
    batch_known_ |= in_batch;
    if (in_batch && batch != batch_) return wrong(what, " ", place, " is ", to_string(shape, false), ", its batch differs from the first operand's");
    std::int64_t elements = 1;
    for (std::int64_t k = 0; k < rank; ++k) {
      const std::int64_t d = shape.dim(shape.rank() - rank + k);
      TRY(bind(token.letters[static_cast<std::size_t>(k)], d, what, place));
      elements *= d;
    }
    if (checks_layouts_)
      TRY(check_layout(shape, rank == 2, what, place));
    else
      (what[0] == 'o' ? layouts_.operands : layouts_.results)[place] = wanted_layout(shape, rank == 2);
    call.pointer[number] = 2 + static_cast<std::int32_t>(what[0] == 'o' ? place : static_cast<std::size_t>(num_pointers_) + place);
    call.bytes[number] = in_batch ? elements * byte_width(shape.dtype()) : 0;
    return {};
  }

  Expected<> bind(char letter, std::int64_t size, const char* what, std::size_t place) {
    if (size > INT32_MAX) return wrong("dimensions of 2^31 and more do not fit LAPACK");
    std::int64_t wanted = size;
    if (letter == 's') wanted = std::min(this->size('m'), this->size('n'));
    if (letter == 'd') wanted = std::max<std::int64_t>(this->size('n') - 1, 0);
    if (const auto known = sizes_.find(letter); known != sizes_.end()) wanted = known->second;
    if (size != wanted) return wrong(what, " ", place, ": dimension of size ", size, " must be ", wanted);
    if (letter != 's' && letter != 'd') sizes_[letter] = size;
    return {};
  }

  static Layout wanted_layout(const Shape& shape, bool is_matrix) {
    Layout layout = Layout::descending(shape.rank());
    if (is_matrix) std::swap(layout.minor_to_major[0], layout.minor_to_major[1]);
    return layout;
  }

  // Dimensions of size 1 may stand anywhere.
  Expected<> check_layout(const Shape& shape, bool is_matrix, const char* what, std::size_t place) const {
    const std::vector<std::int64_t> wanted = wanted_layout(shape, is_matrix).minor_to_major;
    std::vector<std::int64_t> found(wanted);
    if (shape.has_layout()) found.assign(shape.layout().minor_to_major.begin(), shape.layout().minor_to_major.end());
    else if (is_matrix) std::swap(found[0], found[1]);
    const auto strip = [&](std::vector<std::int64_t>& dims) { std::erase_if(dims, [&](std::int64_t d) { return shape.dim(d) == 1; }); };
    std::vector<std::int64_t> have = found, want = wanted;
    strip(have);
    strip(want);
    const bool same = have == want || shape.num_elements() == 0;
    if (same && (!shape.has_layout() || shape.layout().is_plain())) return {};
    return wrong(what, " ", place, " lies in memory as ", to_string(shape), ", must be {", text_of(wanted),
                 "}: matrices column by column, the rest row-major (operand_layout_constraints)");
  }

  static std::string text_of(const std::vector<std::int64_t>& dims) {
    std::string text;
    for (const std::int64_t d : dims) text += (text.empty() ? "" : ",") + std::to_string(d);
    return text;
  }

  void set_sizes() {
    const auto narrow = [&](char letter) { return static_cast<std::int32_t>(size(letter)); };
    call.m = narrow('m');
    call.n = narrow('n');
    call.k = narrow('k');
    call.rhs = narrow('r');
    call.a = narrow('a');
    call.u = narrow('u');
    call.v = narrow('v');
    call.e = narrow('e');
  }

  Expected<RoutinePlan> finish() {
    const auto round_up = [](std::int64_t bytes) { return (bytes + 63) / 64 * 64; };
    const std::int64_t width = byte_width(element());
    call.rwork_offset = round_up(call.lwork * width);
    call.iwork_offset = call.rwork_offset + round_up(call.lrwork * byte_width(real_type(element())));
    call.more_offset = call.iwork_offset + round_up(call.liwork * 4);
    Routine r;
    r.function = target_.routine->functions[type_];
    r.arguments = {{Argument::Kind::Descriptor}, {Argument::Kind::Status}};
    for (std::int64_t i = 0; i < std::ssize(problem_.operands); ++i) r.arguments.push_back({Argument::Kind::Operand, i});
    for (std::int64_t i = 0; i < std::ssize(problem_.results); ++i) r.arguments.push_back({Argument::Kind::Result, i});
    r.descriptor = base::AlignedBytes(std::as_bytes(std::span(&call, 1)));
    r.blocks = 1;
    for (const std::int64_t d : batch_) r.blocks *= d;
    const std::int64_t n = std::max(call.n, 1), m = std::max(call.m, call.m == 0 ? call.n : 1);
    r.block_cost = 1000 + 2 * m * n * std::max(std::min(m, n), std::int64_t{1});
    r.scratch_bytes = round_up(call.more_offset + call.more_bytes);
    RoutinePlan plan;
    plan.calls.push_back(std::move(r));
    return plan;
  }

  using Dims = std::vector<std::int64_t>;

  const CustomCallProblem& problem_;
  const Target& target_;
  const OlderTarget* older_;
  const std::size_t type_;
  std::map<char, std::int64_t> sizes_;
  Dims batch_;
  bool batch_known_ = false;
  bool checks_layouts_ = true;
  LapackLayouts layouts_;
  std::int32_t num_pointers_ = 0;  // of operands
  int num_buffers_ = 0;            // of operands
};

// The settings of targets, from attributes or, in the older form, scalars.

Expected<> no_settings(Planner&) { return {}; }

Expected<> set_uplo(Planner& p, std::size_t scalar) {
  if (!p.is_older()) {
    p.call.uplo = TRY(p.letter("uplo", "LU"));
    return {};
  }
  const std::int64_t lower = TRY(p.scalar(scalar));
  p.call.uplo = lower != 0 ? 'L' : 'U';
  return {};
}

Expected<> potrf(Planner& p) { return set_uplo(p, 0); }
Expected<> sytrd(Planner& p) { return set_uplo(p, 1); }

Expected<> syevd(Planner& p) {
  p.call.mode = p.is_older() ? 'V' : TRY(p.letter("mode", "VN"));
  return set_uplo(p, 0);
}

Expected<> orgqr(Planner& p) {
  return p.want(p.size('m') >= p.size('n') && p.size('n') >= p.size('k'), "rows >= columns >= reflectors");
}

Expected<> ormqr(Planner& p) {
  const std::int64_t left = TRY(p.integer("left")), transpose = TRY(p.integer("transpose"));
  p.call.side = left != 0 ? 'L' : 'R';
  p.call.trans = transpose == 0 ? 'N' : p.is_complex() ? 'C' : 'T';
  const std::int64_t order = p.size(left != 0 ? 'm' : 'n');
  return p.want(p.size('a') == order && p.size('k') <= order && p.size('k') <= p.size('c'), "reflectors have the length of the side that they are applied to");
}

Expected<> trsm(Planner& p) {
  LapackCall& c = p.call;
  if (p.is_older()) {
    const std::int64_t left = TRY(p.scalar(0)), transposed = TRY(p.scalar(2)), unit = TRY(p.scalar(3));
    c.side = left != 0 ? 'L' : 'R';
    c.trans = transposed == 0 ? 'N' : transposed == 1 ? 'T' : 'C';
    c.diag = unit != 0 ? 'U' : 'N';
    c.has_alpha = true;
    TRY(set_uplo(p, 1));
  } else {
    c.side = TRY(p.letter("side", "LR"));
    c.uplo = TRY(p.letter("uplo", "LU"));
    c.trans = TRY(p.letter("trans_x", "NTC"));
    c.diag = TRY(p.letter("diag", "NU"));
  }
  return p.want(p.size('a') == p.size(c.side == 'L' ? 'm' : 'n'), "the triangle has the size of the side that it is on");
}

Expected<> geev(Planner& p) {
  if (p.is_older()) {
    const std::int64_t left = TRY(p.scalar(2)), right = TRY(p.scalar(3));
    p.call.left_vectors = TRY(p.one_of(left, "jobvl", "VN"));
    p.call.right_vectors = TRY(p.one_of(right, "jobvr", "VN"));
    return {};
  }
  p.call.left_vectors = TRY(p.letter("compute_left", "VN"));
  p.call.right_vectors = TRY(p.letter("compute_right", "VN"));
  return {};
}

Expected<> svd(Planner& p) {
  if (p.is_older()) {
    const std::int64_t full = TRY(p.scalar(0)), vectors = TRY(p.scalar(1));
    p.call.mode = vectors == 0 ? 'N' : full != 0 ? 'A' : 'S';
  } else {
    p.call.mode = TRY(p.letter("mode", "ASN"));
  }
  const std::int64_t m = p.size('m'), n = p.size('n'), least = std::min(m, n);
  if (p.call.mode == 'A') return p.want(p.size('u') == m && p.size('v') == n, "mode 'A' gives all singular vectors");
  if (p.call.mode == 'S') return p.want(p.size('u') == least && p.size('v') == least, "mode 'S' gives as many singular vectors as values");
  return {};
}

Expected<> gees(Planner& p) {
  const std::int64_t sort = p.is_older() ? TRY(p.scalar(3)) : TRY(p.integer("sort"));
  if (p.is_older()) {
    const std::int64_t vectors = TRY(p.scalar(2));
    p.call.mode = TRY(p.one_of(vectors, "jobvs", "VN"));
  } else {
    p.call.mode = TRY(p.letter("mode", "VN"));
  }
  if (sort != 'N') return p.wrong("sorted Schur forms need a function that selects, which a program cannot give");
  return {};
}

Expected<> gehrd(Planner& p) {
  const std::int64_t low = p.is_older() ? TRY(p.scalar(1)) : TRY(p.integer("low"));
  const std::int64_t high = p.is_older() ? TRY(p.scalar(2)) : TRY(p.integer("high"));
  const std::int64_t n = p.size('n');
  TRY(p.want(n == 0 || (1 <= low && low <= high && high <= n), "1 <= low <= high <= n"));
  p.call.low = static_cast<std::int32_t>(n == 0 ? 1 : low);
  p.call.high = static_cast<std::int32_t>(n == 0 ? 0 : high);
  return {};
}

Expected<> gtsv(Planner& p) {
  const std::int64_t n = p.size('n'), least = std::max<std::int64_t>(n - 1, 0);
  const auto fits = [&](char letter) { return p.size(letter) == n || p.size(letter) == least; };
  return p.want(fits('e') && fits('f'), "diagonals beside the main one have n or n - 1 elements");
}

constexpr Target kTargets[] = {
    {"potrf", "potrf", &kPotrf, "Tnn", "Tnn E", "", potrf},
    {"getrf", "getrf", &kGetrf, "Tmn", "Tmn Is E", "", no_settings},
    {"geqrf", "geqrf", &kGeqrf, "Tmn", "Tmn Ts", "", no_settings},
    {"geqp3", "geqp3", &kGeqp3, "Tmn In", "Tmn In Ts", "", no_settings},
    {"orgqr", "ungqr", &kOrgqr, "Tmn Tk", "Tmn", "", orgqr},
    {"ormqr", "unmqr", &kOrmqr, "Tac Tk Tmn", "Tmn", "", ormqr},
    {"trsm", "trsm", &kTrsm, "Taa Tmn", "Tmn", "", trsm},
    {"syevd", "heevd", &kSyevd, "Tnn", "Tnn Rn E", "", syevd},
    {"geev", "geev", &kGeev, "Tnn", "Tn Tn Cnn Cnn E", "Tn Tnn Tnn E", geev},
    {"gesdd", "gesdd", &kGesdd, "Tmn", "Tmn Rs Tmu Tvn E", "", svd},
    {"gesvd", "gesvd", &kGesvd, "Tmn", "Tmn Rs Tmu Tvn E", "", svd},
    {"gees", "gees", &kGees, "Tnn", "Tnn Tnn Tn Tn I E", "Tnn Tnn Tn I E", gees},
    {"gehrd", "gehrd", &kGehrd, "Tnn", "Tnn Td E", "", gehrd},
    {"sytrd", "hetrd", &kSytrd, "Tnn", "Tnn Rn Rd Td E", "", sytrd},
    {"gtsv", "gtsv", &kGtsv, "Te Tn Tf Tnr", "Te Tn Tf Tnr E", "", gtsv},
};

constexpr Target kPerturbedTarget = {"", "", &kSolvePerturbed, "Tn Tn Tn Tnr", "Tnr", "", no_settings};
constexpr std::string_view kPerturbedName = "tridiagonal_solve_perturbed_ffi";

// Without `_ffi`: sizes and flags are leading scalar operands.
constexpr OlderTarget kOlder[] = {
    {"potrf", 3, "", "", ""},
    {"getrf", 3, "", "", ""},
    {"geqrf", 4, "", "Tmn Ts E", "Tmn Ts E"},
    {"orgqr", 5, "", "Tmn E", "Tmn E"},
    {"trsm", 7, "S@3 Taa@0 Tmn@1", "", ""},
    {"syevd", 3, "", "", ""},
    {"geev", 4, "", "W W W Tn Tn Cnn Cnn E", "W W Tn Tnn Tnn E"},
    {"gesdd", 6, "", "", ""},
    {"gees", 4, "", "Tnn@0 Tn@2 Tn@3 Tnn@1 I@4 E@5", "Tnn@0 W Tn@2 Tnn@1 I@3 E@4"},
    {"gehrd", 6, "", "", ""},
    {"sytrd", 5, "", "", ""},
};

struct Found {
  const Target* target = nullptr;
  const OlderTarget* older = nullptr;
  std::size_t type = 0;
};

// lapack_spotrf_ffi, lapack_spotrf, blas_strsm: prefix, letter, name, suffix.
std::optional<Found> find(std::string_view name) {
  const bool blas = name.starts_with("blas_");
  if (!blas && !name.starts_with("lapack_")) return std::nullopt;
  name.remove_prefix(blas ? 5 : 7);
  const bool ffi = name.ends_with("_ffi");
  if (ffi) name.remove_suffix(4);
  if (name.empty() || (blas && ffi)) return std::nullopt;
  Found found;
  found.type = std::string_view("sdcz").find(name[0]);
  if (found.type == std::string_view::npos) return std::nullopt;
  name.remove_prefix(1);
  for (const Target& target : kTargets)
    if (name == (found.type < 2 ? target.real : target.complex)) found.target = &target;
  if (found.target == nullptr || (blas && found.target->real != "trsm")) return std::nullopt;
  if (ffi) return found;
  for (const OlderTarget& older : kOlder)
    if (older.real == found.target->real && blas == (older.real == "trsm")) found.older = &older;
  if (found.older == nullptr) return std::nullopt;
  return found;
}

}  // namespace

bool is_lapack(std::string_view target) { return target == kPerturbedName || find(target).has_value(); }

namespace {

Planner planner_of(const CustomCallProblem& problem) {
  if (problem.target == kPerturbedName) {  // its name does not say the type
    constexpr DType kTypes[] = {DType::F32, DType::F64, DType::C64, DType::C128};
    const DType element = problem.operands.empty() ? DType::Invalid : problem.operands[0].dtype();
    const auto type = static_cast<std::size_t>(std::ranges::find(kTypes, element) - std::begin(kTypes));
    return {problem, kPerturbedTarget, nullptr, type % 4};
  }
  const Found found = *find(problem.target);
  return {problem, *found.target, found.older, found.type};
}

}  // namespace

Expected<RoutinePlan> plan_lapack(const CustomCallProblem& problem) { return planner_of(problem).plan(); }

Expected<LapackLayouts> lapack_layouts(const CustomCallProblem& problem) { return planner_of(problem).layouts(); }

}  // namespace hloom::library
