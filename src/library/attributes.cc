#include "library/attributes.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/fail.h"
#include "base/try.h"

namespace hloom::ffi {

Attributes::Attributes(std::vector<NamedAttribute> entries) : entries_(std::move(entries)) {}

const NamedAttribute* Attributes::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &NamedAttribute::name);
  return found == entries_.end() ? nullptr : &*found;
}

namespace {

template <typename T>
const T* value_of(const Attributes& attributes, std::string_view name) {
  const NamedAttribute* found = attributes.find(name);
  return found == nullptr ? nullptr : std::get_if<T>(&found->value);
}

}  // namespace

std::optional<bool> Attributes::flag(std::string_view name) const {
  const bool* value = value_of<bool>(*this, name);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<std::int64_t> Attributes::integer(std::string_view name) const {
  if (const auto* value = value_of<std::int64_t>(*this, name)) return *value;
  const std::optional<bool> truth = flag(name);
  return truth ? std::optional<std::int64_t>(*truth ? 1 : 0) : std::nullopt;
}

std::optional<double> Attributes::number(std::string_view name) const {
  if (const auto* value = value_of<double>(*this, name)) return *value;
  const auto* value = value_of<std::int64_t>(*this, name);
  return value != nullptr ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::optional<std::string_view> Attributes::text(std::string_view name) const {
  const auto* value = value_of<std::string>(*this, name);
  return value != nullptr ? std::optional<std::string_view>(*value) : std::nullopt;
}

}  // namespace hloom::ffi

namespace hloom::library {
namespace {

using ffi::Attribute;

constexpr int kMaxDepth = 64;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '$';
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Expected<ffi::Attributes> read() {
    if (peek() == '\0') return ffi::Attributes();
    auto attributes = TRY(dictionary());
    if (peek() != '\0') return wrong("something follows the dictionary");
    return attributes;
  }

 private:
  Error wrong(std::string_view what) const {
    return fail(Code::InvalidArgument, "backend_config, character ", at_ + 1, ": ", what);
  }

  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  std::string_view word() {
    peek();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Expected<std::string> quoted() {
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        out += text_[at_];
        continue;
      }
      if (++at_ == text_.size()) break;
      out += escaped();
    }
    if (at_ == text_.size()) return wrong("a string does not end");
    ++at_;
    return out;
  }

  // What a backslash makes of the character, or of the two hexadecimal digits, at at_.
  char escaped() {
    const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1; };
    if (at_ + 1 < text_.size() && digit(text_[at_]) >= 0 && digit(text_[at_ + 1]) >= 0) {
      const int value = 16 * digit(text_[at_]) + digit(text_[at_ + 1]);
      ++at_;
      return static_cast<char>(value);
    }
    const char c = text_[at_];
    return c == 'n' ? '\n' : c == 't' ? '\t' : c;
  }

  Expected<ffi::Attributes> dictionary() {
    if (++depth_ > kMaxDepth) return wrong("dictionaries and lists are nested too deeply");
    if (!take('{')) return wrong("'{' was expected");
    std::vector<ffi::NamedAttribute> entries;
    while (!take('}')) {
      std::string name = peek() == '"' ? TRY(quoted()) : std::string(word());
      if (name.empty()) return wrong("a name was expected");
      if (std::ranges::find(entries, name, &ffi::NamedAttribute::name) != entries.end())
        return wrong("'" + name + "' comes twice");
      Attribute value = true;
      if (take('=') || take(':')) value = TRY(attribute());
      entries.push_back({std::move(name), std::move(value)});
      if (!take(',') && peek() != '}') return wrong("',' or '}' was expected");
    }
    --depth_;
    return ffi::Attributes(std::move(entries));
  }

  Expected<Attribute> attribute() {
    const char c = peek();
    if (c == '{') return Attribute(TRY(dictionary()));
    if (c == '[') return list('[', ']');
    if (c == '"') {
      std::string text = TRY(quoted());
      drop_type();
      return Attribute(std::move(text));
    }
    if ((c >= '0' && c <= '9') || c == '-' || c == '+') return number();
    const std::size_t begin = at_;
    const std::string_view name = word();
    if (name == "true" || name == "false") return Attribute(name == "true");
    if (name == "unit") return Attribute(true);
    if (name == "array" && take('<')) return array();
    if (name == "dense" && take('<')) return dense();
    at_ = begin;
    return raw();
  }

  // `array<i64: 1, 2>`, behind the '<'.
  Expected<Attribute> array() {
    word();
    if (take('>')) return Attribute(std::vector<std::int64_t>());
    if (!take(':')) return wrong("':' was expected");
    return list('\0', '>');
  }

  // `dense<[1, 2]> : tensor<2xi64>`, behind the first '<'.
  Expected<Attribute> dense() {
    Attribute value = TRY(attribute());
    if (!take('>')) return wrong("'>' was expected");
    drop_type();
    return value;
  }

  Expected<Attribute> list(char open, char close) {
    if (++depth_ > kMaxDepth) return wrong("dictionaries and lists are nested too deeply");
    if (open != '\0') take(open);
    std::vector<Attribute> elements;
    while (!take(close)) {
      Attribute element = TRY(attribute());
      elements.push_back(std::move(element));
      if (!take(',') && peek() != close) return wrong("a list does not end");
    }
    --depth_;
    return joined(elements);
  }

  Expected<Attribute> joined(const std::vector<Attribute>& elements) const {
    std::vector<std::int64_t> integers;
    std::vector<double> numbers;
    std::vector<std::string> texts;
    for (const Attribute& e : elements) {
      if (const auto* truth = std::get_if<bool>(&e)) integers.push_back(*truth ? 1 : 0);
      if (const auto* integer = std::get_if<std::int64_t>(&e)) integers.push_back(*integer);
      if (const auto* number = std::get_if<double>(&e)) numbers.push_back(*number);
      if (const auto* integer = std::get_if<std::int64_t>(&e)) numbers.push_back(static_cast<double>(*integer));
      if (const auto* text = std::get_if<std::string>(&e)) texts.push_back(*text);
    }
    if (integers.size() == elements.size()) return Attribute(std::move(integers));
    if (numbers.size() == elements.size()) return Attribute(std::move(numbers));
    if (texts.size() == elements.size()) return Attribute(std::move(texts));
    return wrong("a list of different things");
  }

  Expected<Attribute> number() {
    const std::size_t begin = at_;
    if (text_[at_] == '-' || text_[at_] == '+') ++at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || ((text_[at_] == '-' || text_[at_] == '+') && (text_[at_ - 1] | 32) == 'e'))) ++at_;
    std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const std::string_view type = drop_type();
    if (digits.starts_with("0x")) return pattern(digits.substr(2), type);
    const bool floating = digits.find_first_of(".eE") != std::string_view::npos || type.starts_with('f') || type == "bf16";
    if (floating) return finished<double>(digits);
    return finished<std::int64_t>(digits);
  }

  template <typename T>
  Expected<Attribute> finished(std::string_view digits) const {
    T value{};
    const auto done = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    // Above the largest signed integer: the bits of an unsigned one.
    if constexpr (std::is_integral_v<T>)
      if (done.ec == std::errc::result_out_of_range && digits[0] != '-') {
        std::uint64_t bits = 0;
        const auto again = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
        if (again.ec == std::errc() && again.ptr == digits.data() + digits.size()) return Attribute(static_cast<std::int64_t>(bits));
      }
    if (done.ec != std::errc() || done.ptr != digits.data() + digits.size())
      return wrong("'" + std::string(digits) + "' is no number that fits");
    return Attribute(value);
  }

  Expected<Attribute> pattern(std::string_view digits, std::string_view type) const {
    std::uint64_t bits = 0;
    const auto done = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    if (done.ec != std::errc() || done.ptr != digits.data() + digits.size()) return wrong("no hexadecimal number");
    if (type == "f64") return Attribute(std::bit_cast<double>(bits));
    if (type == "f32") return Attribute(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
    return Attribute(static_cast<std::int64_t>(bits));
  }

  // ` : type`, of which the name is given. In lists of JSON there is none.
  std::string_view drop_type() {
    if (!take(':')) return {};
    const std::string_view type = word();
    int depth = 0;
    while (at_ < text_.size() && (depth > 0 || text_[at_] == '<')) {
      depth += text_[at_] == '<' ? 1 : text_[at_] == '>' ? -1 : 0;
      ++at_;
    }
    return type;
  }

  // Anything else up to the end of the entry.
  Expected<Attribute> raw() {
    const std::size_t begin = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && (c == ',' || c == '}' || c == ']' || c == '>')) break;
      depth += c == '<' || c == '{' || c == '[' || c == '(' ? 1 : c == '>' || c == '}' || c == ']' || c == ')' ? -1 : 0;
    }
    if (at_ == begin) return wrong("a value was expected");
    std::string_view value = text_.substr(begin, at_ - begin);
    while (is_space(value.back())) value.remove_suffix(1);
    return Attribute(std::string(value));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Expected<ffi::Attributes> parse_attributes(std::string_view text) { return Reader(text).read(); }

}  // namespace hloom::library
