"""The tool `llm`, with our server among its extra OpenAI models."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

URL, MODEL = os.environ["CLIENTS_URL"], os.environ["CLIENTS_MODEL"]
with tempfile.TemporaryDirectory() as home:
    models = f"- model_id: ours\n  model_name: {MODEL}\n  api_base: {URL}/v1\n  supports_schema: true\n"
    (Path(home) / "extra-openai-models.yaml").write_text(models)
    environ = os.environ | {"LLM_USER_PATH": home, "OPENAI_API_KEY": "none"}
    command = [sys.executable, "-m", "llm", "-m", "ours", "-o", "temperature", "0", "-o", "max_tokens", "60"]

    def said(*more: str) -> str:
        run = subprocess.run([*command, *more], env=environ, capture_output=True, text=True, check=True)
        return run.stdout

    answer = said("What is the capital of France?")
    assert "Paris" in answer
    assert said("--no-stream", "What is the capital of France?") == answer
    assert '"name"' in said("--schema", "name str, country str", "Name a city.")
