#include "emit/symbol_name.h"

namespace hloom::emit {

std::string symbol_name(std::string_view kernel) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string name = "hloom_";
  for (const char c : kernel) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain)
      name += c;
    else if (c == '_')
      name += "__";
    else
      name += {'_', kHex[byte >> 4], kHex[byte & 15]};
  }
  return name;
}

}  // namespace hloom::emit
