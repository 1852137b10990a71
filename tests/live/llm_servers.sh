#!/bin/sh
# Runs the client against running servers, by their base addresses. Nothing is started here.
#
#   tests/live/llm_servers.sh [--llama URL] [--llama-tools URL] [--llama-thinking URL] [--litellm URL]
#
# --llama           llama.cpp's server with a small instruct model: text, streamed and not, list of models, errors
# --llama-tools     the same with a chat template for tools: a real tool call, shown how by finished rounds
# --llama-thinking  the same with a template that opens <think>: thoughts
# --litellm         LiteLLM with tests/live/litellm.yaml and the key sk-local: its mocks, and the recorded quirks behind it
#
# A URL looks like http://127.0.0.1:18081/v1
set -eu
while [ $# -gt 1 ]; do
    case $1 in
        --llama) export AGENT_SMITH_LIVE_LLAMA="$2" ;;
        --llama-tools) export AGENT_SMITH_LIVE_LLAMA_TOOLS="$2" ;;
        --llama-thinking) export AGENT_SMITH_LIVE_LLAMA_THINKING="$2" ;;
        --litellm) export AGENT_SMITH_LIVE_LITELLM="$2" ;;
        *) echo "unknown argument: $1" >&2; exit 2 ;;
    esac
    shift 2
done
cd "$(dirname "$0")/../.."
exec cargo test --test suite llm_live -- --nocapture --test-threads=1
