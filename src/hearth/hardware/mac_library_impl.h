#pragma once
// What a Mac's system libraries offer, looked up by name when it is wanted:
// neither their headers nor Objective-C is needed to compile this, and where a
// library or a function is missing a fact stays unknown.
#include <string>

#include <dlfcn.h>

namespace hearth::hardware {

class MacLibrary {
 public:
  explicit MacLibrary(const char* path)
      : handle_(dlopen(path, RTLD_LAZY | RTLD_LOCAL)) {}

  bool is_open() const { return handle_ != nullptr; }

  // Signature is the C function's type; null where there is no such function.
  template <typename Signature>
  Signature* function(const char* name) const {
    void* found = handle_ == nullptr ? nullptr : dlsym(handle_, name);
    return reinterpret_cast<Signature*>(found);
  }

 private:
  void* handle_;  // the system's own, never closed
};

inline MacLibrary mac_framework(const std::string& name) {
  const std::string path =
      "/System/Library/Frameworks/" + name + ".framework/" + name;
  return MacLibrary(path.c_str());
}

// Objects of the Objective-C runtime, asked by the names of their methods. A
// message to null is null, as in the language.
class MacObjects {
 public:
  using Object = void*;
  using Selector = void*;

  MacObjects()
      : send_(runtime_.function<void()>("objc_msgSend")),
        select_(runtime_.function<Selector(const char*)>("sel_registerName")),
        find_(runtime_.function<Object(const char*)>("objc_getClass")),
        push_(runtime_.function<void*()>("objc_autoreleasePoolPush")),
        pop_(runtime_.function<void(void*)>("objc_autoreleasePoolPop")) {
    whole_ = send_ && select_ && find_ && push_ && pop_;
    if (whole_) pool_ = push_();
  }
  // Whatever was handed out ends here.
  ~MacObjects() {
    if (whole_) pop_(pool_);
  }
  MacObjects(const MacObjects&) = delete;
  MacObjects& operator=(const MacObjects&) = delete;

  Object type(const char* name) const { return whole_ ? find_(name) : nullptr; }

  // The method's result and arguments as its declaration has them: the call
  // must be made through exactly that type.
  template <typename Result, typename... Arguments>
  Result ask(Object object, const char* method, Arguments... arguments) const {
    if (!whole_ || object == nullptr) return Result();
    using Method = Result(Object, Selector, Arguments...);
    return reinterpret_cast<Method*>(send_)(
        object, select_(method), arguments...
    );
  }

  bool knows(Object object, const char* method) const {
    if (!whole_) return false;
    return ask<bool>(object, "respondsToSelector:", select_(method));
  }

  std::string text(Object string) const {
    const auto* bytes = ask<const char*>(string, "UTF8String");
    return bytes == nullptr ? "" : bytes;
  }

 private:
  MacLibrary runtime_{"/usr/lib/libobjc.A.dylib"};
  void (*send_)();
  Selector (*select_)(const char*);
  Object (*find_)(const char*);
  void* (*push_)();
  void (*pop_)(void*);
  bool whole_ = false;
  void* pool_ = nullptr;
};

}  // namespace hearth::hardware
