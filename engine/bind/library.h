// Library: the declarations of all loaded rule files by name, in the one form
// that calls are bound to: ops, host ops and fns differ only here.

#ifndef CLEAVE_ENGINE_BIND_LIBRARY_H_
#define CLEAVE_ENGINE_BIND_LIBRARY_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/source.h"

namespace cleave {

// A rule file with its text. Kept alive by every library that has items of it.
struct LoadedFile {
  LoadedFile(Source s, RuleFile f) : source(std::move(s)), file(std::move(f)) {}
  Source source;
  RuleFile file;
  bool shipped = false;
  bool generated = false;  // by a program, of rules that may be shipped
};

// Where a body stands: an op's own, or that of an `override` item.
struct BodyPart {
  const Item* item = nullptr;
  const Source* source = nullptr;
};

// Something that can be called: `softplus`, `aten.add.Tensor`, `onnx.Gelu`, or
// a fn.
struct Callable {
  std::string name;
  const Item* item = nullptr;
  const Source* source = nullptr;
  std::vector<InputDecl> inputs;
  std::vector<AttributeDecl> attributes;
  // Inputs and attributes that are given by position, in order.
  std::vector<std::string> positional;
  // Declared results, then those of `mutates`, named by the mutated argument.
  std::vector<ResultDecl> results;
  // Whether the types of `results` are declared; those of host ops are what
  // their bodies give.
  bool has_result_types = true;
  // A host's `-> Tensor[]`: a list of results, as long as the body's.
  bool has_result_list = false;
  // The `override` items of this op (engine/bind/op_lines.h).
  std::vector<BodyPart> overrides;
};

// The name of result i: of a list "y0", "y1".
std::string ResultName(const Callable& callable, size_t i);

// Callable from its declaration; a host's schema is translated. Mistakes in it
// go to `diagnostics`.
Callable MakeCallable(const Item& item, const Source& source,
                      std::vector<Diagnostic>* diagnostics);

// The name that calls use: "aten.add.Tensor", "onnx.Gelu", else the item's.
std::string CallableName(const Item& item);

class Library {
 public:
  // Adds all items of a file; a name that is taken is a diagnostic.
  void Add(std::shared_ptr<const LoadedFile> file,
           std::vector<Diagnostic>* diagnostics);
  // Puts the `override` items of a file that was added in force, once the files
  // of the ops are added. A mistake is one that names no op, or what another
  // item overrides.
  void AddOverrides(const LoadedFile& file,
                    std::vector<Diagnostic>* diagnostics);

  const Callable* FindCallable(absl::string_view name) const;
  // The def that a call in `reader`, the source of a file that was added,
  // means. Shipped files and the others have their defs apart: `def tail` of
  // one is no `tail` of the other. Defs of shipped files are private to these
  // files, since the next version may lack them; generated files alone have
  // both.
  const Item* FindDef(absl::string_view name, const Source& reader) const;
  // The `jvp` item of a primitive.
  const Item* FindDerivative(absl::string_view primitive) const;
  // The `numeric` item of a primitive on operands of a dtype.
  const Item* FindNumeric(absl::string_view primitive,
                          absl::string_view dtype) const;
  const std::map<std::string, const Item*>& rewrites() const {
    return rewrites_;
  }
  const Source& SourceOf(const Item& item) const;
  // The def of that name in shipped files, which others do not call.
  const Item* FindShippedDef(absl::string_view name) const;
  bool IsEnumWord(absl::string_view word) const {
    return enum_words_.count(std::string(word)) > 0;
  }

  const std::vector<std::shared_ptr<const LoadedFile>>& files() const {
    return files_;
  }
  const std::map<std::string, Callable>& callables() const {
    return callables_;
  }
  // The names of the defs of all files; one that two defs have is there twice.
  std::vector<std::string> DefNames() const;
  const std::map<std::string, const Item*>& derivatives() const {
    return derivatives_;
  }
  const std::vector<const Item*>& examples() const { return examples_; }
  const std::set<std::string>& enum_words() const { return enum_words_; }

 private:
  // Null, and a diagnostic: `item` overrides no op.
  Callable* FindOverridden(const Item& item,
                           std::vector<Diagnostic>* diagnostics);

  std::vector<std::shared_ptr<const LoadedFile>> files_;
  std::map<std::string, Callable> callables_;
  std::map<std::string, const Item*> shipped_defs_;
  std::map<std::string, const Item*> other_defs_;
  std::map<std::string, const Item*> derivatives_;
  std::map<std::string, const Item*> rewrites_;
  std::map<std::string, const Item*> numerics_;  // by "exp f32"
  std::map<const Item*, const LoadedFile*> files_of_;
  absl::flat_hash_map<const Source*, const LoadedFile*> files_by_source_;
  std::vector<const Item*> examples_;
  std::set<std::string> enum_words_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_BIND_LIBRARY_H_
