"""A causal language model on PyTorch: prompts taken as one trie, every shared token computed once.

    weights   what is loaded, and of which kinds its layers are    memory     what a run will take, before it
    kernels   attention over a stretch of keys, with its weight    trie       prompts by their shared beginnings
    attention how a layer of the model reaches its keys            trunk      the one context, cut back in no time
    rows      questions that branch off it, side by side           engine     chunks, branches, answers
    proof     the model's own forward pass against this one        choice     the next token

Nothing here knows of prompts, chats or settings; only PyTorch and transformers are imported.
"""
