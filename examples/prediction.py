"""An edit. The client sends the expected answer, so that drafts are copied from it and only verified."""

from client import client, model

CODE = """\
def total(prices):
    result = 0
    for price in prices:
        result += price
    return result
"""
answer = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": f"Rename `result` to `amount`. Answer with the code only.\n\n{CODE}"}],
    prediction={"type": "content", "content": CODE.replace("result", "amount")},
    temperature=0,
    max_tokens=100,
)
print(answer.choices[0].message.content)
details = answer.usage.completion_tokens_details
print(f"{details.accepted_prediction_tokens} of {answer.usage.completion_tokens} tokens were predicted")
