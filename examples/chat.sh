#!/bin/sh
# A chat, streamed as server-sent events.
curl --silent --show-error --no-buffer "${OPENAI_BASE_URL:-http://127.0.0.1:8000/v1}/chat/completions" \
  --header 'Content-Type: application/json' \
  --header "Authorization: Bearer ${OPENAI_API_KEY:-none}" \
  --data '{
    "messages": [{"role": "user", "content": "Name three colours."}],
    "max_tokens": 40,
    "stream": true
  }'
