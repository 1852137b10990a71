#!/usr/bin/env python3
"""The least an agent can do: the floor that the figures of `cargo bench --bench exec` are ratios to.

Asks the Chat-Completions server at argv[1] with the prompt argv[2], streaming; runs each command it is asked for with
`bash -c`, sends the result back, and prints the final text. No prompt, no store, no checks; the standard library only.
"""
import http.client
import json
import subprocess
import sys

BASH = {"type": "function", "function": {"name": "bash", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}


def ask(connection, messages):
    body = json.dumps({"model": "mock-model", "stream": True, "messages": messages, "tools": [BASH]})
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    call = None
    while line := response.readline():
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            delta = choice["delta"]
            if delta.get("content"):
                sys.stdout.write(delta["content"])
            for piece in delta.get("tool_calls") or ():
                if call is None:
                    call = {"id": piece["id"], "name": piece["function"]["name"], "arguments": ""}
                call["arguments"] += piece["function"].get("arguments", "")
    return call


def main():
    host, port = sys.argv[1].split("//")[1].split("/")[0].split(":")
    connection = http.client.HTTPConnection(host, int(port))
    messages = [{"role": "user", "content": sys.argv[2]}]
    while call := ask(connection, messages):
        command = json.loads(call["arguments"])["command"]
        ran = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        function = {"name": call["name"], "arguments": call["arguments"]}
        messages.append({"role": "assistant", "content": None,
                         "tool_calls": [{"id": call["id"], "type": "function", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": ran.stdout.decode()})
    print()


main()
