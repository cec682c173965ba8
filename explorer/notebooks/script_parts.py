"""The parts of a script that are the same for every run, as Python source.

They use numpy, torch and transformers only.  `script` puts the settings of a run in front of them.
"""

from __future__ import annotations

IMPORTS = """\
import json
import os
import sys

import numpy as np
import torch
from transformers import AttentionInterface, AutoModelForCausalLM, AutoTokenizer
"""

TOKENIZE_TEXT = """\
found = tokenizer(PROMPT)["input_ids"]
"""
TOKENIZE_LETTERS = """\
found = tokenizer(PROMPT, split_special_tokens=True)["input_ids"]  # "<|end|>" stays text
"""
TOKENIZE_CHAT = """\
messages = [{"role": "user", "content": PROMPT}]
text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
found = tokenizer(text, add_special_tokens=False)["input_ids"]
"""
COMPARE_TOKENS = """\
if list(found) != PROMPT_IDS:
    print("The tokenizer splits the prompt otherwise here; the run's own ids are used.",
          file=sys.stderr)
ids, real = list(PROMPT_IDS), [1] * len(PROMPT_IDS)  # real: 1 = a token, 0 = padding
"""
GIVEN_TOKENS = """\
# The run was not given one text: its tokens are taken as they are.
ids, real = list(PROMPT_IDS), [1] * len(PROMPT_IDS)  # real: 1 = a token, 0 = padding
"""
PAD_LEFT = """\
ids, real = [PAD_ID] * PAD + ids, [0] * PAD + real
"""
PAD_RIGHT = """\
ids, real = ids + [PAD_ID] * PAD, real + [0] * PAD
"""

CAUSAL_MASK = """\
def mask_of(real):
    \"\"\"(1, T): transformers adds the causal mask itself, and any sliding window.\"\"\"
    return torch.tensor([real])
"""
OPEN_MASK = """\
def mask_of(real):
    \"\"\"The causal mask is off: (1, 1, T, T), 0 where a query may attend to a key.\"\"\"
    place = torch.arange(len(real))
    distance = (place[:, None] - place[None, :]).abs()

    def mask(window):
        allowed = torch.tensor(real, dtype=torch.bool)[None, :].expand(len(real), -1)
        if window:  # looks both ways now
            allowed = allowed & (distance < window)
        hidden = torch.finfo(model.dtype).min
        return torch.where(allowed, 0.0, hidden).to(model.dtype)[None, None]

    masks = {kind: mask(window) for kind, window in WINDOWS.items()}
    return masks if len(masks) > 1 else next(iter(masks.values()))
"""
CHANGED_ATTENTION = """\
def within(places, span):
    return torch.full_like(places, span is None, dtype=torch.bool) if span is None else (
        (places >= span[0]) & (places <= span[1])
    )


def changed(module, query, key, value, attention_mask, **options):
    \"\"\"The model's own eager attention; scores scaled, cells cut, heads silenced.\"\"\"
    places = [vars(sys.modules[base.__module__]) for base in type(module).__mro__]
    eager = next(names[EAGER] for names in places if EAGER in names)
    layer, heads, rows, keys = module.layer_idx, query.shape[1], query.shape[2], key.shape[2]
    query, mask = query.clone(), attention_mask[..., :keys].expand(-1, heads, -1, -1).clone()
    for at, head, factor in SCALES:
        if at in (None, layer):
            query[:, slice(None) if head is None else head] *= factor
    hidden = mask <= torch.finfo(mask.dtype).min / 2
    mask[hidden] = 0.0
    q, k = torch.arange(rows)[:, None], torch.arange(keys)[None, :]
    for at, head, queries, key_span, back, allowed in CELLS:
        if at in (None, layer):
            cells = within(q, queries) & within(k, key_span) & within(q - k, back)
            hidden[:, slice(None) if head is None else slice(head, head + 1), cells] = not allowed
    mask[hidden] = -torch.inf
    mask[hidden.all(-1)] = 0.0  # of a query that attends to nothing: its output is zero, below
    output, weights = eager(module, query, key, value, attention_mask=mask, **options)
    nothing = hidden.all(-1)  # (1, H, T)
    output = output.masked_fill(nothing.transpose(1, 2)[..., None], 0.0)
    output[:, :, [head for at, head in SILENCED if at == layer]] = 0.0
    return output, weights.masked_fill(nothing[..., None], 0.0)


EAGER = "eager_attention_forward"
AttentionInterface.register("eager", changed)
"""
SILENT_LAYERS = """\
def pass_on(module, args, kwargs, output):
    \"\"\"A silenced layer gives its input.\"\"\"
    stream = args[0] if args else kwargs["hidden_states"]
    return (stream, *output[1:]) if isinstance(output, tuple) else stream


lists = (module for module in model.modules() if isinstance(module, torch.nn.ModuleList))
layers = next(found for found in lists if len(found) == LAYERS)
for layer in SILENT:
    layers[layer].register_forward_hook(pass_on, with_kwargs=True)
"""
FORWARD = """\
@torch.inference_mode()
def read(ids, real, attentions=False):
    \"\"\"One pass over T tokens: logits (V,) at the last real one, a map (H, T, T) a layer.\"\"\"
    positions = (torch.tensor(real).cumsum(0) - 1).clamp(min=0) + FIRST_POSITION
    output = model(
        input_ids=torch.tensor([ids]),
        attention_mask=mask_of(real),
        position_ids=positions[None],
        use_cache=False,
        output_attentions=attentions,
    )
    last = max(slot for slot, is_real in enumerate(real) if is_real)
    maps = [a[0].float().numpy() for a in output.attentions if a is not None] if attentions else []
    return output.logits[0, last].float().numpy(), maps
"""

SAMPLING = """\
def softmax(z):
    p = np.exp(z - z.max())
    return p / p.sum()


def after_sampling(logits, s, previous):
    \"\"\"Ids and probabilities of the tokens that are left, the most likely first.\"\"\"
    greedy = s["greedy"] or s["temperature"] == 0
    ids, z, temperature = np.arange(len(logits)), logits.astype(np.float64), 1.0
    order = np.lexsort((ids, -z))  # ties by id
    ids, z = ids[order], z[order]
    for link in ["penalty"] if greedy else s["order"]:
        scaled = (z - z[0]) / temperature
        p = softmax(scaled)
        keep = len(z)
        if link == "penalty" and s["repetition_penalty"] != 1:
            seen, by = np.isin(ids, previous), s["repetition_penalty"]
            z = np.where(seen, np.where(z < 0, z * by, z / by), z)
            order = np.lexsort((ids, -z))
            ids, z = ids[order], z[order]
        elif link == "temperature":
            temperature = s["temperature"]
        elif link == "top_k" and 0 < s["top_k"] < len(z):
            keep = np.count_nonzero(scaled >= scaled[s["top_k"] - 1])  # ties are kept
        elif link == "top_p" and s["top_p"] < 1:
            keep = np.searchsorted(np.cumsum(p), s["top_p"]) + 1
        elif link == "min_p" and s["min_p"] > 0:
            keep = np.count_nonzero(p >= s["min_p"] * p[0])
        ids, z = ids[:keep], z[:keep]
    if greedy:
        return ids[:1], np.ones(1)
    return ids, softmax((z - z[0]) / temperature)


def uniform(seed, step):
    \"\"\"The number in [0, 1) that picks the token of a step.\"\"\"
    return np.random.Generator(np.random.Philox(key=seed, counter=step)).random()


def pick(ids, p, u):
    \"\"\"The token whose stretch of the cumulative distribution holds u.\"\"\"
    cdf = np.cumsum(p)
    place = min(np.searchsorted(cdf, u * cdf[-1], side="right"), len(cdf) - 1)
    while p[place] == 0:
        place -= 1
    return int(ids[place])
"""

GENERATE = """\
prompt_ids, chosen, steps, attention = list(ids), [], [], None
for step in range(STEPS):
    logits, maps = read(ids, real, attentions=step == STEP)
    settings = SAMPLING[SAMPLING_OF[step]]
    kept, p = after_sampling(logits, settings, [i for i, r in zip(ids, real) if r])
    before, after = softmax(logits.astype(np.float64)), np.zeros(len(logits))
    after[kept] = p
    u = None
    if step in FORCED:
        token = FORCED[step]
    elif settings["greedy"] or settings["temperature"] == 0:
        token = int(kept[0])
    else:
        u = uniform(settings["seed"], step)
        token = pick(kept, p, u)
    if maps:
        attention = maps[LAYER]  # (heads, queries, keys)
    best = np.lexsort((np.arange(len(before)), -before))[:TOP].tolist()
    steps.append({
        "token": token,
        "u": u,
        "top": [
            {"id": i, "text": tokenizer.decode([i]), "before": before[i], "after": after[i]}
            for i in best
        ],
    })
    chosen.append(token)
    ids, real = ids + [token], real + [1]
"""
REPORT = """\
for number, step in enumerate(steps, start=1):
    how = "" if step["u"] is None else f", random number {step['u']:.6f}"
    print(f"Token {number}: {tokenizer.decode([step['token']])!r}{how}")
    for row in step["top"][:5]:
        print(f"  {row['before']:8.3%} {row['after']:8.3%}  {row['text']!r}")
result = {
    "prompt_ids": prompt_ids,
    "chosen_ids": chosen,
    "text": tokenizer.decode(chosen),
    "steps": steps,
}
if attention is not None:
    row = attention[HEAD, QUERY].tolist()
    result["attention"] = {"layer": LAYER, "head": HEAD, "query": QUERY, "row": row}
print(json.dumps(result))
"""
PLOT = """\
try:
    import matplotlib.pyplot as plt
except ImportError:
    print("Install matplotlib to see the pictures.", file=sys.stderr)
else:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5))
    if attention is not None:
        left.imshow(attention[HEAD], cmap="magma")
        left.set(title=f"Layer {LAYER}, head {HEAD}", xlabel="key", ylabel="query")
    top = steps[STEP]["top"][::-1]
    right.barh([repr(row["text"]) for row in top], [row["before"] for row in top], label="model")
    right.barh([repr(row["text"]) for row in top], [row["after"] for row in top], height=0.3,
               label="after sampling settings")
    right.set(title=f"Token {STEP + 1}", xlabel="probability")
    right.legend()
    plt.show()
"""
