#include "pickle.h"

#include <cstring>
#include <unordered_map>

#include "elf/base/error.h"
#include "pickle_objects.h"
#include "pickle_ops.h"

namespace elf {
namespace {

using namespace pickle;
using Kind = TorchObject::Kind;

// A pickle describes tensors, it does not hold them: larger ones are no checkpoints.
constexpr size_t kLongestPickle = size_t{256} << 20;

class Interpreter {
 public:
  explicit Interpreter(std::string_view bytes) : bytes_(bytes) {}

  Unpickled run() {
    for (;;) {
      op_at_ = at_;
      const auto op = static_cast<unsigned char>(take(1)[0]);
      if (op == kStop) break;
      if (!scalar(op) && !text(op) && !container(op) && !memory(op) && !object(op)) {
        fail(cat("instruction ", describe(op),
                 " is none that torch.save writes for dictionaries of tensors; the file is refused"));
      }
    }
    Unpickled result = objects_.take();
    result.root = pop();
    result.end = at_;
    return result;
  }
  size_t position() const { return op_at_; }  // of the instruction that is being done

 private:
  [[noreturn]] static void fail(const std::string& what) { throw PickleFault(what); }
  static std::string describe(unsigned char op) {
    constexpr char kHex[] = "0123456789abcdef";
    std::string text = {'0', 'x', kHex[op >> 4], kHex[op & 15]};
    if (op > 0x20 && op < 0x7f) text += cat(" '", static_cast<char>(op), "'");
    return text;
  }

  // ---- bytes
  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) fail("the pickle ends too early; the file is cut short or damaged");
    const std::string_view piece = bytes_.substr(at_, count);
    at_ += count;
    return piece;
  }
  template <class T>
  T number() {  // little endian, as this machine
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("the pickle ends too early; the file is cut short or damaged");
    const std::string_view piece = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return piece;
  }

  // ---- stack
  TorchObject* make(Kind kind) { return objects_.make(kind); }
  void push(TorchObject* object) { stack_.push_back(object); }
  TorchObject* top() {
    if (stack_.size() <= floor()) fail("the stack is empty; the file is damaged");
    return stack_.back();
  }
  TorchObject* pop() {
    TorchObject* object = top();
    stack_.pop_back();
    return object;
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<const TorchObject*> pop_to_mark() {
    if (marks_.empty()) fail("no mark on the stack; the file is damaged");
    const std::vector<const TorchObject*> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                                                stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  void push_integer(int64_t value) {
    push(make(Kind::kInteger));
    top()->integer = value;
  }
  void push_text(Kind kind, std::string_view value) {
    push(make(kind));
    top()->text = value;
  }
  void push_sequence(std::vector<const TorchObject*> items) {
    push(make(Kind::kSequence));
    top()->items = std::move(items);
  }

  // ---- instructions, in groups; each returns false for one that is not of its group
  bool scalar(unsigned char op) {
    switch (op) {
      case kProto:
        if (const int version = number<uint8_t>(); version > 5)
          fail(cat("pickle protocol ", version, ", expected at most 5"));
        return true;
      case kFrame:
        number<uint64_t>();
        return true;
      case kNone:
        push(make(Kind::kNone));
        return true;
      case kTrue:
      case kFalse:
        push(make(Kind::kBool));
        top()->integer = op == kTrue;
        return true;
      case kInt4:
        push_integer(number<int32_t>());
        return true;
      case kInt1:
        push_integer(number<uint8_t>());
        return true;
      case kInt2:
        push_integer(number<uint16_t>());
        return true;
      case kLong1:
        push_long(number<uint8_t>());
        return true;
      case kLong4:
        push_long(number<uint32_t>());
        return true;
      case kReal:
        push_real();
        return true;
      default:
        return false;
    }
  }
  // Two's complement, little endian. What does not fit 64 bits is opaque: no size or step is that large.
  void push_long(uint64_t bytes) {
    const std::string_view digits = take(bytes);
    if (bytes > 8) {
      push_text(Kind::kOpaque, "int");
      return;
    }
    uint64_t value = bytes > 0 && (digits.back() & 0x80) ? ~uint64_t{0} : 0;
    for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
    push_integer(static_cast<int64_t>(value));
  }
  void push_real() {  // big endian
    uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    push(make(Kind::kReal));
    std::memcpy(&top()->real, &bits, 8);
  }

  bool text(unsigned char op) {
    switch (op) {
      case kUnicode1:
      case kString1:
        push_text(Kind::kText, take(number<uint8_t>()));
        return true;
      case kUnicode4:
      case kString4:
        push_text(Kind::kText, take(number<uint32_t>()));
        return true;
      case kUnicode8:
        push_text(Kind::kText, take(number<uint64_t>()));
        return true;
      case kBytes1:
        push_text(Kind::kBytes, take(number<uint8_t>()));
        return true;
      case kBytes4:
        push_text(Kind::kBytes, take(number<uint32_t>()));
        return true;
      case kBytes8:
      case kByteArray8:
        push_text(Kind::kBytes, take(number<uint64_t>()));
        return true;
      default:
        return false;
    }
  }

  bool container(unsigned char op) {
    switch (op) {
      case kEmptyDict:
        push(make(Kind::kDict));
        return true;
      case kEmptyList:
      case kEmptyTuple:
      case kEmptySet:
        push(make(Kind::kSequence));
        return true;
      case kMark:
        marks_.push_back(stack_.size());
        return true;
      case kList:
      case kTuple:
      case kFrozenSet:
        push_sequence(pop_to_mark());
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        push_last(op - kTuple1 + 1);
        return true;
      case kDict: {
        const auto items = pop_to_mark();
        push(make(Kind::kDict));
        set_items(items);
        return true;
      }
      case kAppend:
        append({pop()});
        return true;
      case kAppends:
      case kAddItems:
        append(pop_to_mark());
        return true;
      case kSetItem: {
        const TorchObject* value = pop();
        const TorchObject* key = pop();
        set_items({key, value});
        return true;
      }
      case kSetItems:
        set_items(pop_to_mark());
        return true;
      default:
        return false;
    }
  }
  void push_last(int count) {
    std::vector<const TorchObject*> items(static_cast<size_t>(count));
    for (int i = count; i-- > 0;) items[static_cast<size_t>(i)] = pop();
    push_sequence(std::move(items));
  }
  void append(const std::vector<const TorchObject*>& items) {
    TorchObject* list = top();
    if (list->is(Kind::kOpaque)) return;
    if (!list->is(Kind::kSequence)) fail("items are added to what is no list; the file is damaged");
    list->items.insert(list->items.end(), items.begin(), items.end());
  }
  void set_items(const std::vector<const TorchObject*>& items) {
    TorchObject* dictionary = top();
    if (dictionary->is(Kind::kOpaque)) return;
    if (!dictionary->is(Kind::kDict) || items.size() % 2 != 0)
      fail("entries are set in what is no dictionary; the file is damaged");
    for (size_t i = 0; i < items.size(); i += 2) dictionary->entries.emplace_back(items[i], items[i + 1]);
  }

  bool memory(unsigned char op) {
    switch (op) {
      case kPut1:
        memo_[number<uint8_t>()] = top();
        return true;
      case kPut4:
        memo_[number<uint32_t>()] = top();
        return true;
      case kMemoize:
        memo_[memo_.size()] = top();
        return true;
      case kGet1:
        recall(number<uint8_t>());
        return true;
      case kGet4:
        recall(number<uint32_t>());
        return true;
      case kPop:
        if (!marks_.empty() && stack_.size() == marks_.back()) {
          marks_.pop_back();
        } else {
          pop();
        }
        return true;
      case kPopMark:
        pop_to_mark();
        return true;
      case kDup:
        push(top());
        return true;
      default:
        return false;
    }
  }
  void recall(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) fail(cat("object ", index, " is used before it is made; the file is damaged"));
    push(found->second);
  }

  bool object(unsigned char op) {
    switch (op) {
      case kGlobal: {
        const std::string module(line());
        push(objects_.global(module + "." + std::string(line())));
        return true;
      }
      case kStackGlobal: {
        const TorchObject* name = pop();
        const TorchObject* module = pop();
        if (!name->is(Kind::kText) || !module->is(Kind::kText)) fail("a global without a name");
        push(objects_.global(module->text + "." + name->text));
        return true;
      }
      case kReduce:
      case kNewObject: {
        const TorchObject* arguments = pop();
        const TorchObject* callee = pop();
        push(objects_.call(*callee, *arguments));
        return true;
      }
      case kNewObjectEx: {
        pop();  // keyword arguments
        const TorchObject* arguments = pop();
        const TorchObject* callee = pop();
        push(objects_.call(*callee, *arguments));
        return true;
      }
      case kBuild:  // attributes of the object below: of no concern here
        pop();
        top();
        return true;
      case kPersistentId:
        push(objects_.storage(*pop()));
        return true;
      default:
        return false;
    }
  }

  std::string_view bytes_;
  size_t at_ = 0, op_at_ = 0;
  PickleObjects objects_;
  std::vector<TorchObject*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, TorchObject*> memo_;
};

}  // namespace

Unpickled unpickle(std::string_view bytes, const std::string& where) {
  Interpreter interpreter(bytes.substr(0, kLongestPickle));  // behind it lie the storages of the older format
  try {
    return interpreter.run();
  } catch (const PickleFault& fault) {
    usage_error(where, ": byte ", interpreter.position(), ": ", fault.what(),
                bytes.size() > kLongestPickle ? "; of a pickle no more than 256 MiB are read" : "");
  }
}

}  // namespace elf
