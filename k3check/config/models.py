"""What a configuration can say, as one strict pydantic model.

Every dialect is read into this model; its field names are the keys of our own ``config.toml``.
None means "not set": then each check uses its own number, and nothing is sent for the field.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    model_validator,
)

# pydantic reads these annotations at run time.
from k3check.config.names import Auth, DType, LogLevel, Model, Protocol  # noqa: TC001 - see above
from k3check.operators import OPERATORS

Size: TypeAlias = Annotated[int, Field(ge=1, le=1 << 20)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=1 << 20)]
Tokens: TypeAlias = Annotated[int, Field(ge=1, le=1 << 30)]
Unit: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Penalty: TypeAlias = Annotated[float, Field(ge=-2, le=2)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=86400)]


def _known_operator(name: str) -> str:
    # Dialects and options are checked before, with a did-you-mean; this guards direct use.
    if name not in OPERATORS:
        raise ValueError(f"operators|there is no operator {name}")
    return name


OperatorName: TypeAlias = Annotated[
    str, AfterValidator(_known_operator), Field(json_schema_extra={"enum": list(OPERATORS)})
]
HeaderName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")
]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=4096)]


class _Section(BaseModel):
    # hide_input_in_errors: pydantic's own text would quote a key of the wrong type.
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )


class ApiConfig(_Section):
    """The endpoint and how patiently it is asked."""

    base_url: Annotated[str, Field(max_length=4096)] | None = Field(
        default=None, description="The API's address, with or without /v1, without a query."
    )
    # No lower bound: an empty key is a finding of `link`, which knows what a client makes of it.
    api_key: SecretStr | None = Field(
        default=None, description="The key. Better left out: set the variable K3CHECK_API_KEY."
    )
    timeout_seconds: Seconds = Field(default=120.0, description="Deadline of one request.")
    max_retries: int = Field(default=3, ge=0, le=100, description="Retries of what can heal.")
    provider: Text | None = Field(default=None, description="The provider's name; shown only.")
    headers: dict[HeaderName, Annotated[str, Field(max_length=4096)]] = Field(
        default={},
        description="Sent along with every request: what a gateway routes by, for example.",
    )


class ModelConfig(_Section):
    """The model as the endpoint's clients ask for it."""

    name: Annotated[str, Field(max_length=4096)] = Field(
        default="kimi-k3", description="The model's id."
    )
    context_window: Tokens | None = Field(
        default=None, description="Tokens of prompt and answer together."
    )
    max_output_tokens: Tokens | None = Field(default=None, description="Tokens of one answer.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="K3 fixes 1.0.")
    top_p: Unit | None = Field(default=None, description="K3 fixes 0.95.")
    n: int | None = Field(
        default=None, ge=1, le=128, description="Answers to one request; K3 fixes 1."
    )
    presence_penalty: Penalty | None = Field(default=None, description="K3 fixes 0.")
    frequency_penalty: Penalty | None = Field(default=None, description="K3 fixes 0.")
    path: Text | None = Field(default=None, description="Weights that a server loads; shown only.")
    semantics: Model | None = Field(
        default=None, description="Whose functions operators are that name none: k3, kimi-linear."
    )
    num_layers: Size | None = Field(default=None, description="93 in K3.")
    norm_eps: float | None = Field(default=None, gt=0, le=1, description="1e-5 in K3.")


class KdaConfig(_Section):
    """Kimi Delta Attention, as the operator checks of the articles' form use it."""

    d_k: Size | None = Field(default=None, description="Key width of one head; 128 in K3.")
    d_v: Size | None = Field(default=None, description="Value width of one head; 128 in K3.")
    alpha_floor: Unit | None = Field(
        default=None, description="Lowest decay of the articles' gate."
    )
    alpha_ceil: Unit | None = Field(default=None, description="Highest decay that is expected.")
    beta_init: float | None = Field(
        default=None, ge=0, le=2, description="Write strength at the start."
    )
    short_conv_kernel: int | None = Field(default=None, ge=1, le=64, description="4 in K3.")
    gate_bottleneck: Size | None = Field(
        default=None, description="Width between the gate's projections."
    )

    num_heads: Size | None = Field(default=None, description="96 in K3.")
    gate_lower_bound: float | None = Field(
        default=None, le=0, description="Of the log decay of one token; -5 in K3."
    )
    full_rank_gate: bool | None = Field(default=None, description="true in K3.")

    @model_validator(mode="after")
    def _window(self) -> KdaConfig:
        floor, ceil = self.alpha_floor, self.alpha_ceil
        if floor is not None and ceil is not None and floor >= ceil:
            raise ValueError(f"alpha_floor|{floor} is not below alpha_ceil ({ceil})")
        return self


class FlashKdaConfig(_Section):
    """The chunkwise prefill."""

    chunk_size: Size | None = Field(default=None, description="Tokens of one chunk.")
    use_ut_transform: bool = Field(default=True, description="Solve the triangular system at once.")
    bind_dplr_to_k: bool = Field(default=True, description="Tie both low-rank vectors to k.")
    prefill_parallel: bool = Field(default=True, description="Chunks side by side where possible.")


class AttnResidualsConfig(_Section):
    """Attention residuals over the blocks of layers."""

    enabled: bool = Field(default=True, description="Whether the model has them.")
    num_blocks: Size | None = Field(default=None, description="Stored blocks; 8 in K3.")
    block_size: Size | None = Field(default=None, description="Layers in a block; 12 in K3.")
    residual_dim: Size | None = Field(
        default=None, description="Width of the articles' projection."
    )
    enable_gating: bool | None = Field(default=None, description="The articles' learned gate.")


class MoeConfig(_Section):
    """The mixture of experts."""

    num_routed_experts: Size | None = Field(default=None, description="896 in K3.")
    num_shared_experts: Count | None = Field(default=None, description="2 in K3.")
    top_k: Size | None = Field(default=None, description="Routed experts of one token; 16 in K3.")
    sparsity_ratio: float | None = Field(
        default=None, gt=0, le=1e6, description="Routed experts over top_k; 56 in K3."
    )
    situ_tanh_clip: float | None = Field(
        default=None, gt=0, le=1e6, description="Bound of SiTU-GLU's up branch; 25 in K3."
    )
    quantile_balancing: bool | None = Field(default=None, description="Balance by quantiles.")
    balancing: Text | None = Field(
        default=None, description="The balancing's name; quantile in K3."
    )
    latent_dim: Size | None = Field(
        default=None, description="Width inside the experts; 3584 in K3."
    )
    hidden_dim: Size | None = Field(default=None, description="Width of the model; 7168 in K3.")
    norm: Text | None = Field(default=None, description="rmsnorm in K3.")
    activation: Text | None = Field(default=None, description="situ_glu in K3.")
    situ_gate_clip: float | None = Field(
        default=None, gt=0, le=1e6, description="Bound of SiTU-GLU's gate branch; 4 in K3."
    )
    expert_dim: Size | None = Field(default=None, description="Width of one expert; 3072 in K3.")
    router: Text | None = Field(default=None, description="The scores' function; sigmoid in K3.")
    renormalize: bool | None = Field(default=None, description="Weights add up to 1; true in K3.")
    scaling_factor: float | None = Field(
        default=None, gt=0, le=1e6, description="Factor on the weights; 1 in K3."
    )
    first_dense_layers: Count | None = Field(
        default=None, description="Layers without experts at the start; 1 in K3."
    )
    dense_dim: Size | None = Field(default=None, description="Their width; 33792 in K3.")

    @model_validator(mode="after")
    def _enough_experts(self) -> MoeConfig:
        experts, top_k = self.num_routed_experts, self.top_k
        if experts is not None and top_k is not None and top_k > experts:
            raise ValueError(f"top_k|{top_k} is more than num_routed_experts ({experts})")
        return self


class ValidationConfig(_Section):
    """Which of the articles' checks run, and how strictly."""

    enable_kda: bool = Field(default=True, description="Run the suite kda.")
    enable_flashkda: bool = Field(default=True, description="Run the suite flashkda.")
    enable_attn_residuals: bool = Field(default=True, description="Run the suite attnres.")
    numerical_tolerance: float | None = Field(
        default=None, gt=0, le=1, description="Caps the derived limits, as relative L2."
    )
    compare_with_reference: bool = Field(default=True, description="Compare with the reference.")


class LoggingConfig(_Section):
    """What is recorded beside the verdicts."""

    level: LogLevel = Field(default="INFO", description="Accepted as the articles have it.")
    log_dir: Text | None = Field(default=None, description="A folder for logs.")
    log_kda_state_norm: bool = Field(
        default=False, description="Record the state's norm per token."
    )
    log_chunk_boundary: bool = Field(
        default=False, description="Record the state at chunk boundaries."
    )


class ServingConfig(_Section):
    """A server's own settings; shown only."""

    host: Text | None = None
    port: int | None = Field(default=None, ge=1, le=65535)


class AttentionConfig(_Section):
    """The layer pattern, as a serving configuration states it."""

    type: Text | None = None
    kda_layers: Count | None = Field(default=None, description="69 in K3.")
    gated_mla_layers: Count | None = Field(default=None, description="24 in K3.")
    block_pattern: Text | None = Field(default=None, description="3kda_1mla in K3.")
    full_attn_layers: list[Annotated[int, Field(ge=0, le=1 << 20)]] | None = Field(
        default=None, description="Numbers of the layers with full attention, from 1."
    )


class MlaConfig(_Section):
    """Gated multi-head latent attention."""

    num_heads: Size | None = Field(default=None, description="96 in K3.")
    q_rank: Size | None = Field(default=None, description="Width of the queries' latent; 1536.")
    kv_rank: Size | None = Field(default=None, description="Width of the cached latent; 512.")
    nope_dim: Size | None = Field(default=None, description="Key width from the latent; 128.")
    rope_dim: Size | None = Field(default=None, description="Key width shared by heads; 64.")
    value_dim: Size | None = Field(default=None, description="Value width of one head; 128.")
    output_gate: bool | None = Field(default=None, description="true in K3.")
    no_position: bool | None = Field(default=None, description="No rotation; true in K3.")


class CacheConfig(_Section):
    """The prefix cache."""

    strategy: Text | None = None
    checkpoint_interval: Tokens | None = Field(
        default=None, description="Tokens between checkpoints."
    )
    affinity_scheduling: bool | None = None


class ClientConfig(_Section):
    """What a client's file says beside the endpoint."""

    stream: bool | None = Field(default=None, description="Ask for a streamed answer.")
    extra_body: dict[str, Any] = Field(default={}, description="Sent along with every request.")
    background_model: Annotated[str, Field(max_length=4096)] | None = Field(
        default=None, description="Model of an agent's background calls; shown only."
    )
    agent: dict[str, Any] = Field(default={}, description="An agent's own settings; shown only.")
    permissions: dict[str, Any] = Field(
        default={}, description="An agent's permissions; shown only."
    )


class LinkConfig(_Section):
    """How the endpoint is spoken to."""

    protocol: Protocol = Field(default="auto", description="Which API the client at hand speaks.")
    auth: Auth = Field(default="auto", description="Which header carries the key.")
    proxy: Text | None = Field(
        default=None, description="The way out; it wins over HTTP_PROXY and its like."
    )
    ca_file: Text | None = Field(
        default=None, description="A PEM file with certificates to trust besides the usual ones."
    )
    agent_turns: int = Field(default=12, ge=1, le=100, description="Most turns of the agent loop.")
    needle_tokens: int = Field(
        default=100_000, ge=1000, le=1 << 20, description="Length of the long context, in tokens."
    )


class OperatorConfig(_Section):
    """One operator under test; see :class:`k3check.nouns.request.CandidateSpec`."""

    target: Text | None = Field(
        default=None,
        description="package.module:function, path/file.py:function, dir:FOLDER with test vectors, "
        "or nothing for the built-in implementation.",
    )
    command: list[Text] | None = Field(
        default=None,
        min_length=1,
        description='A program instead of a callable: ["./runner", "{inputs}", "{outputs}"].',
    )
    convention: Text = Field(default="auto", description="How the callable takes its tensors.")
    semantics: Text | None = Field(default=None, description="k3, kimi-linear or article.")
    dtype: DType | None = Field(default=None, description="Of inputs and outputs.")
    state_dtype: DType | None = Field(default=None, description="Of the state.")
    accumulate_dtype: DType | None = Field(default=None, description="Of sums inside.")
    device: Annotated[str, StringConstraints(pattern=r"^[a-z]+(:[0-9]{1,4})?$")] = Field(
        default="auto", description="auto, cpu, cuda, cuda:1 ..."
    )
    options: dict[str, Any] = Field(default={}, description="Passed through to the callable.")
    multiple_of: Size | None = Field(
        default=None, description="The callable only takes multiples of so many tokens."
    )
    heads: Size | None = Field(default=None, description="Heads that cases have.")
    key_dim: Size | None = Field(default=None, description="K, the size of a key.")
    value_dim: Size | None = Field(default=None, description="V, the size of a value.")
    timeout: Seconds | None = Field(default=None, description="Seconds that one check may take.")


class Config(_Section):
    """A whole configuration."""

    api: ApiConfig = ApiConfig()
    model: ModelConfig = ModelConfig()
    kda: KdaConfig = KdaConfig()
    flashkda: FlashKdaConfig = FlashKdaConfig()
    attn_residuals: AttnResidualsConfig = AttnResidualsConfig()
    moe: MoeConfig = MoeConfig()
    validation: ValidationConfig = ValidationConfig()
    logging: LoggingConfig = LoggingConfig()
    serving: ServingConfig = ServingConfig()
    attention: AttentionConfig = AttentionConfig()
    mla: MlaConfig = MlaConfig()
    cache: CacheConfig = CacheConfig()
    client: ClientConfig = ClientConfig()
    link: LinkConfig = LinkConfig()
    operators: dict[OperatorName, OperatorConfig] = Field(
        default={}, description="Operators under test."
    )

    def settings(self) -> dict[str, dict[str, Any]]:
        """The sections that operator checks read, without what is not set."""
        names = (
            "model", "kda", "flashkda", "attn_residuals", "moe", "mla", "attention", "logging",
            "validation",
        )  # fmt: skip
        return {name: getattr(self, name).model_dump(exclude_none=True) for name in names}
