"""The kernels that SGLang 0.5.21 imports from `sgl_kernel` on a CPU without AMX, in plain torch.

Only what a Llama-shaped model with EAGLE3 needs; everything else is refused by name. The contracts are SGLang's
(see NOTICE), the code is not.
"""

from sgl_kernel.library import LIBRARY
from sgl_kernel.refusal import Unsupported, rotate_input_ids_cpu
from sgl_kernel.slots import (
    assign_draft_cache_locs_contiguous_cpu,
    assign_extend_cache_locs_cpu,
    assign_req_to_token_pool_cpu,
    build_draft_decode_metadata_cpu,
    copy_all_layer_kv_cache_cpu,
    fill_accept_out_cache_loc_cpu,
    fill_bonus_tokens_cpu,
)
from sgl_kernel.trees import build_tree_kernel_efficient_cpu, verify_tree_greedy_cpu

__all__ = [
    "LIBRARY",
    "Unsupported",
    "assign_draft_cache_locs_contiguous_cpu",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "build_draft_decode_metadata_cpu",
    "build_tree_kernel_efficient_cpu",
    "copy_all_layer_kv_cache_cpu",
    "fill_accept_out_cache_loc_cpu",
    "fill_bonus_tokens_cpu",
    "rotate_input_ids_cpu",
    "verify_tree_greedy_cpu",
]
