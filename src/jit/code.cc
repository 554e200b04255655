#include "jit/code.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/AbsoluteSymbols.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ObjectFileInterface.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h>
#include <llvm/Support/MemoryBuffer.h>

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "jit/debugger.h"
#include "jit/llvm_error.h"
#include "jit/perf_map.h"
#include "jit/slab.h"
#include "jit/unwind.h"
#include "jit/unwind_plugin.h"

namespace hloom::jit {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;

using Addresses = std::unordered_map<std::string_view, void*>;

Addresses table(std::span<const Symbol> externals) {
  Addresses result;
  for (const Symbol& symbol : externals) result.emplace(symbol.name, symbol.address);
  for (const Symbol& symbol : known_symbols()) result.emplace(symbol.name, symbol.address);
  return result;
}

}  // namespace

struct Code::Impl {
  ContiguousSections sections;
  UnwindTables unwind;  ///< in the sections
  Slab slab{sections};
  std::string reported;  ///< LLVM's reasons, which it gives apart from the failure
  std::optional<orc::ExecutionSession> session;
  std::optional<orc::ObjectLinkingLayer> layer;
  orc::JITDylib* dylib = nullptr;
  std::unordered_map<std::string, void*> defined;
  std::unordered_map<std::string, std::string> aliases;  ///< from each name of a part to its first
  std::vector<std::shared_ptr<const Object>> objects;    ///< until they are linked

  Expected<> open(const LinkOptions&);
  Expected<> add(std::span<const std::vector<std::string>> names, const ObjectOf& object_of);
  Expected<> add_object(const Object&);
  Expected<> add_renamed(const Object&, const std::string& name);
  Expected<> define_externals(const Addresses& externals);
  Expected<> link(const Addresses& externals);

  ~Impl() {
    if (session) llvm::cantFail(session->endSession());
  }
};

Expected<> Code::Impl::open(const LinkOptions& options) {
  auto control =
      orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
  if (!control) return from_llvm(hloom::Code::Internal, "linker", control.takeError());
  session.emplace(std::move(*control));
  session->setErrorReporter([this](llvm::Error error) {
    reported += (reported.empty() ? "" : "; ") + llvm::toString(std::move(error));
  });
  layer.emplace(*session, slab);
  dylib = &session->createBareJITDylib("program");
  layer->addPlugin(make_unwind_plugin(unwind));
  if (options.perf) layer->addPlugin(make_perf_map());
  if (options.debugger) layer->addPlugin(make_debugger_support());
  return {};
}

Expected<> Code::Impl::add(std::span<const std::vector<std::string>> names, const ObjectOf& object_of) {
  for (const auto& part : names)
    for (const std::string& name : part)
      if (!aliases.emplace(name, part[0]).second)
        return fail(hloom::Code::AlreadyExists, "two objects define '", name, "'");
  for (std::size_t n = 0; n < names.size(); ++n) {
    const std::shared_ptr<const Object> object = TRY(object_of(n));
    objects.push_back(object);
    TRY(names[n].empty() ? add_object(*object) : add_renamed(*object, names[n][0]));
  }
  return {};
}

// As it is, for debuggers read names in the bytes.
Expected<> Code::Impl::add_object(const Object& object) {
  auto buffer = llvm::MemoryBuffer::getMemBuffer(llvm::StringRef(object.bytes.data(), object.bytes.size()),
                                                 object.name, /*RequiresNullTerminator=*/false);
  auto interface = orc::getObjectFileInterface(*session, buffer->getMemBufferRef());
  if (!interface) return from_llvm(hloom::Code::InvalidArgument, "object " + object.name, interface.takeError());
  for (const auto& [symbol, flags] : interface->SymbolFlags)
    if (!flags.hasMaterializationSideEffectsOnly()) defined.emplace((*symbol).str(), nullptr);
  llvm::Error error = layer->add(dylib->getDefaultResourceTracker(), std::move(buffer), std::move(*interface));
  if (error) return from_llvm(hloom::Code::AlreadyExists, "object " + object.name, std::move(error));
  return {};
}

// What the object exports takes the first of the names, what it refers to the first name of whoever has it.
Expected<> Code::Impl::add_renamed(const Object& object, const std::string& name) {
  const llvm::MemoryBufferRef bytes({object.bytes.data(), object.bytes.size()}, name);
  auto graph = jitlink::createLinkGraphFromObject(bytes, session->getSymbolStringPool());
  if (!graph) return from_llvm(hloom::Code::InvalidArgument, "object " + name, graph.takeError());
  std::vector<jitlink::Symbol*> exported;
  for (jitlink::Symbol* symbol : (*graph)->defined_symbols())
    if (symbol->hasName() && symbol->getScope() == jitlink::Scope::Default) exported.push_back(symbol);
  if (exported.size() != 1)
    return fail(hloom::Code::InvalidArgument, "object ", name, ": exports ", exported.size(), " functions, not one");
  exported[0]->setName(session->intern(name));
  for (jitlink::Symbol* symbol : (*graph)->external_symbols())
    if (const auto alias = aliases.find((*symbol->getName()).str()); alias != aliases.end())
      symbol->setName(session->intern(alias->second));
  defined.emplace(name, nullptr);
  llvm::Error error = layer->add(dylib->getDefaultResourceTracker(), std::move(*graph));
  if (error) return from_llvm(hloom::Code::AlreadyExists, "object " + name, std::move(error));
  return {};
}

// Defines just those externals that the waiting objects ask for, so that a long table costs little.
Expected<> Code::Impl::define_externals(const Addresses& externals) {
  orc::SymbolMap found;
  std::set<std::string> missing;
  for (jitlink::LinkGraph* graph : slab.waiting()) {
    for (const jitlink::Symbol* symbol : graph->external_symbols()) {
      const std::string name = (*symbol->getName()).str();
      if (defined.contains(name) || symbol->isWeaklyReferenced()) continue;
      const auto external = externals.find(name);
      if (external == externals.end()) {
        missing.insert("'" + name + "' of " + graph->getName());
        continue;
      }
      found[symbol->getName()] = {orc::ExecutorAddr::fromPtr(external->second), llvm::JITSymbolFlags::Exported};
    }
  }
  if (!missing.empty()) {
    std::string list;
    for (const std::string& name : missing) list += (list.empty() ? "" : ", ") + name;
    return fail(hloom::Code::NotFound, "unresolved symbol ", list);
  }
  llvm::cantFail(dylib->define(orc::absoluteSymbols(std::move(found))));
  return {};
}

// The lookup reaches the slab with each object in turn; then everything outside is known and the sizes are, so the
// objects go on, and the lookup ends within place().
Expected<> Code::Impl::link(const Addresses& externals) {
  orc::SymbolLookupSet names;
  for (const auto& [name, address] : defined) names.add(session->intern(name));
  if (names.empty()) return {};
  std::optional<llvm::Expected<orc::SymbolMap>> result;
  session->lookup(orc::LookupKind::Static, {{dylib, orc::JITDylibLookupFlags::MatchAllSymbols}}, std::move(names),
                  orc::SymbolState::Ready, [&](llvm::Expected<orc::SymbolMap> map) { result.emplace(std::move(map)); },
                  orc::NoDependenciesToRegister);
  Expected<> ready = define_externals(externals);
  if (ready) {
    ready = slab.place();
  } else {
    slab.abandon(ready.error().message());
  }
  HLOOM_CHECK(result.has_value());
  if (!*result) {
    Error error = from_llvm(hloom::Code::InvalidArgument, "link", result->takeError());
    if (!ready) return ready;
    return fail(error.code(), error.message(), "; ", reported);
  }
  for (const auto& [name, symbol] : **result) defined[(*name).str()] = symbol.getAddress().toPtr<void*>();
  TRY(slab.seal());
  unwind.publish();
  return {};
}

Expected<Code> Code::link(const std::vector<Object>& objects, std::span<const Symbol> externals,
                          const LinkOptions& options) {
  const std::vector<std::vector<std::string>> names(objects.size());
  const ObjectOf object_of = [&](std::size_t n) {
    return std::shared_ptr<const Object>(&objects[n], [](const Object*) {});
  };
  return link_parts(names, object_of, externals, options);
}

Expected<Code> Code::link_parts(std::span<const std::vector<std::string>> names, const ObjectOf& object_of,
                                std::span<const Symbol> externals, const LinkOptions& options) {
  auto impl = std::make_unique<Impl>();
  TRY(impl->open(options));
  TRY(impl->add(names, object_of));
  TRY(impl->link(table(externals)));
  impl->objects.clear();
  return Code(std::move(impl));
}

Expected<void*> Code::lookup(std::string_view name) const {
  const auto alias = impl_->aliases.find(std::string(name));
  const auto found = impl_->defined.find(alias == impl_->aliases.end() ? std::string(name) : alias->second);
  if (found == impl_->defined.end()) return fail(hloom::Code::NotFound, "no function '", name, "' in the code");
  return found->second;
}

ContiguousSections::Statistics Code::statistics() const { return impl_->sections.statistics(); }

const std::byte* Code::begin(Section section) const { return impl_->sections.begin(section); }

Code::Code(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Code::Code(Code&&) noexcept = default;
Code& Code::operator=(Code&&) noexcept = default;
Code::~Code() = default;

}  // namespace hloom::jit
