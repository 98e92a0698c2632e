# Talks to a server with the client of OpenAI for Python, and prints what it got as JSON. Arguments: the URL, the key.
import json
import sys

from openai import APIStatusError, OpenAI

client = OpenAI(base_url=sys.argv[1] + "/v1", api_key=sys.argv[2], max_retries=0)
got = {"models": [model.id for model in client.models.list()]}

response = client.responses.create(model="teller", input="Tea?")
got["response"] = [response.status, response.output_text, response.usage.output_tokens]

with client.responses.stream(model="teller", input="Tea?") as stream:
    deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
    got["streamed_response"] = [stream.get_final_response().output_text, "".join(deltas)]

question = [{"role": "user", "content": "Tea?"}]
completion = client.chat.completions.create(model="teller", messages=question)
got["completion"] = [completion.choices[0].finish_reason, completion.choices[0].message.content]

chunks = client.chat.completions.create(model="teller", messages=question, stream=True)
got["streamed_completion"] = "".join(
    choice.delta.content or "" for chunk in chunks for choice in chunk.choices
)

asked = client.responses.create(model="office", input="Pay.")
approval = next(item for item in asked.output if item.type == "mcp_approval_request")
answer = {"type": "mcp_approval_response", "approval_request_id": approval.id, "approve": True}
paid = client.responses.create(model="office", input=[answer], previous_response_id=asked.id)
got["approved"] = [approval.name, paid.output_text]

try:
    client.responses.create(model="nobody", input="Tea?")
except APIStatusError as error:
    got["refused"] = [error.status_code, error.code]

print(json.dumps(got))
