"""A chat, streamed. The last chunk says what speculation did."""

from client import client, model

stream = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": "Tell me a short story about a dragon."}],
    temperature=0.7,
    max_tokens=120,
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
speculation = chunk.metrics["speculative_decoding"]
print(f"{speculation['mean_acceptance_length']:.2f} tokens a round with policy {speculation['policy']}")
