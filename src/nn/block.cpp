#include "elf/nn/block.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elf/nn/rms_norm.h"
#include "kernels.h"
#include "passes.h"
#include "short_attention.h"

namespace elf::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [..., C] -> [tokens, C]
at::Tensor tokens_of(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

// x W^T; [..., in] -> [..., out]
at::Tensor multiplied(const at::Tensor& x, const at::Tensor& weight) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return at::mm(tokens_of(x), weight.t()).view(sizes);
}

// x + y W^T + b: the product is added to where the sum already lies.
at::Tensor project_onto(const at::Tensor& x, const at::Tensor& y, const Linear& layer) {
  const at::Tensor sum = at::add(x, layer.bias);
  tokens_of(sum).addmm_(tokens_of(y), layer.weight.t());
  return sum;
}

struct LinearGrads {
  at::Tensor x, weight, bias;
};

// grad [tokens, out], x [tokens, in]
LinearGrads project_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight) {
  return {at::mm(grad, weight), at::mm(grad.t(), x), grad.sum(0)};
}

at::Tensor swapped(const at::Tensor& x) {  // [B, S, N, d] <-> [B, N, S, d]
  return x.transpose(1, 2);
}

struct Mixed {
  at::Tensor out;    // [B, S, N, d] contiguous
  at::Tensor state;  // what the way back needs beside it
};

Mixed mix(const HeadsPass& heads) {
  if (is_short(heads.q.size(1), heads.q.size(3))) {
    auto [out, weights] = short_attention_forward(heads.q, heads.k, heads.v);
    return {out, weights};
  }
  auto [out, log_sums] =
      at::_scaled_dot_product_flash_attention_for_cpu(swapped(heads.q), swapped(heads.k), swapped(heads.v));
  return {swapped(out).contiguous(), log_sums};
}

// Gradients of q, k and v, [B, S, N, d] contiguous.
variable_list mix_backward(const at::Tensor& grad, const HeadsPass& heads, const Mixed& mixed) {
  if (is_short(heads.q.size(1), heads.q.size(3)))
    return short_attention_backward(grad, heads.q, heads.k, heads.v, mixed.state);
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      swapped(grad), swapped(heads.q), swapped(heads.k), swapped(heads.v), swapped(mixed.out), mixed.state,
      /*dropout_p=*/0.0, /*is_causal=*/false);
  return {swapped(dq).contiguous(), swapped(dk).contiguous(), swapped(dv).contiguous()};
}

// With `bias`, which is added to qkv on the way.
HeadsPass heads_of(const at::Tensor& qkv, const Attention& attn, const RopeTable& rope, int64_t prefix,
                   const at::Tensor& bias = {}) {
  const bool copy_v = is_short(qkv.size(1), qkv.size(2) / 3 / attn.num_heads);
  return heads_forward(qkv, attn.q_norm, attn.k_norm, attn.num_heads, rope, prefix, copy_v, bias);
}

// x + attn(norm(x)), and what its way back keeps.
struct AttentionPass {
  at::Tensor out, qkv;
  Mixed mixed;
};

AttentionPass attention_forward(const at::Tensor& x, const at::Tensor& norm, const Attention& attn,
                                const RopeTable& rope, int64_t prefix) {
  const at::Tensor qkv = multiplied(rms_norm_forward(x, norm, kRmsNormEps).y, attn.qkv.weight);
  const Mixed mixed = mix(heads_of(qkv, attn, rope, prefix, attn.qkv.bias));
  return {project_onto(x, mixed.out.flatten(2), attn.proj), qkv, mixed};
}

struct AttentionHalf : public torch::autograd::Function<AttentionHalf> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& norm,
                            const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
                            const at::Tensor& q_norm, const at::Tensor& k_norm, const at::Tensor& proj_weight,
                            const at::Tensor& proj_bias, int64_t num_heads, const RopeTable& rope,
                            int64_t prefix) {
    const Attention attn{{qkv_weight, qkv_bias}, q_norm, k_norm, {proj_weight, proj_bias}, num_heads};
    const AttentionPass pass = attention_forward(x, norm, attn, rope, prefix);
    ctx->save_for_backward({x, norm, qkv_weight, q_norm, k_norm, proj_weight, rope.cos, rope.sin, pass.qkv,
                            pass.mixed.out, pass.mixed.state});
    ctx->saved_data["num_heads"] = num_heads;
    ctx->saved_data["prefix"] = prefix;
    return pass.out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list s = ctx->get_saved_variables();
    const at::Tensor &x = s[0], &norm = s[1], &qkv = s[8], grad = grads[0].contiguous();
    const Attention attn{{s[2], {}}, s[3], s[4], {s[5], {}}, ctx->saved_data["num_heads"].toInt()};
    const RopeTable rope{s[6], s[7]};
    const int64_t prefix = ctx->saved_data["prefix"].toInt();
    const Mixed mixed{s[9], s[10]};

    const LinearGrads proj =
        project_backward(tokens_of(grad), tokens_of(mixed.out.flatten(2)), attn.proj.weight);
    HeadGrads heads_grads;
    {
      const HeadsPass heads = heads_of(qkv, attn, rope, prefix);
      const variable_list d = mix_backward(proj.x.view(mixed.out.sizes()), heads, mixed);
      heads_grads = heads_backward(d[0], d[1], d[2], qkv, attn.q_norm, attn.k_norm, heads.inverse,
                                   attn.num_heads, rope, prefix);
    }
    const NormPass normed = rms_norm_forward(x, norm, kRmsNormEps);
    const LinearGrads in = project_backward(tokens_of(heads_grads.qkv), tokens_of(normed.y), attn.qkv.weight);
    const NormGrads out = rms_norm_backward(in.x.view(x.sizes()), x, norm, normed.inverse, grad);
    const at::Tensor none;
    return {out.x,     out.weight, in.weight, in.bias, heads_grads.q_norm, heads_grads.k_norm, proj.weight,
            proj.bias, none,       none,      none};
  }
};

// x + w3(gate(w12(norm(x)))), and what its way back keeps.
struct FeedPass {
  at::Tensor out, ab;
};

FeedPass feed_forward(const at::Tensor& x, const at::Tensor& norm, const SwiGlu& mlp) {
  const at::Tensor ab = multiplied(rms_norm_forward(x, norm, kRmsNormEps).y, mlp.w12.weight);
  return {project_onto(x, gated_silu_forward(ab, mlp.w12.bias), mlp.w3), ab};
}

struct FeedHalf : public torch::autograd::Function<FeedHalf> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& norm,
                            const at::Tensor& w12_weight, const at::Tensor& w12_bias,
                            const at::Tensor& w3_weight, const at::Tensor& w3_bias) {
    const FeedPass pass = feed_forward(x, norm, {{w12_weight, w12_bias}, {w3_weight, w3_bias}});
    ctx->save_for_backward({x, norm, w12_weight, w3_weight, pass.ab});
    return pass.out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list s = ctx->get_saved_variables();
    const at::Tensor &x = s[0], &norm = s[1], &ab = s[4], grad = grads[0].contiguous();
    const LinearGrads down = project_backward(tokens_of(grad), tokens_of(gated_silu_forward(ab)), s[3]);
    const at::Tensor grad_ab = gated_silu_backward(down.x, tokens_of(ab));
    const NormPass normed = rms_norm_forward(x, norm, kRmsNormEps);
    const LinearGrads up = project_backward(grad_ab, tokens_of(normed.y), s[2]);
    const NormGrads out = rms_norm_backward(up.x.view(x.sizes()), x, norm, normed.inverse, grad);
    return {out.x, out.weight, up.weight, up.bias, down.weight, down.bias};
  }
};

}  // namespace

bool serves_fused_block(const at::Tensor& x) {
  return on_cpu_in_float(x);
}

at::Tensor fused_block(const Block& block, const at::Tensor& input, const RopeTable& rope, int64_t prefix) {
  const at::Tensor x = input.contiguous();
  const Attention& attn = block.attn;
  const SwiGlu& mlp = block.mlp;
  if (needs_graph({x, block.norm1, attn.qkv.weight})) {
    const at::Tensor middle =
        AttentionHalf::apply(x, block.norm1, attn.qkv.weight, attn.qkv.bias, attn.q_norm, attn.k_norm,
                             attn.proj.weight, attn.proj.bias, attn.num_heads, rope, prefix);
    return FeedHalf::apply(middle, block.norm2, mlp.w12.weight, mlp.w12.bias, mlp.w3.weight, mlp.w3.bias);
  }
  const at::Tensor middle = attention_forward(x, block.norm1, attn, rope, prefix).out;
  return feed_forward(middle, block.norm2, mlp).out;
}

}  // namespace elf::nn
