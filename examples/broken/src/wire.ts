import type { Model } from '@tallystick/core'
import { httpHarness, type ModelHarness } from '@tallystick/testkit/contract'

/** Plays Ollama to a model: a reply is one line of JSON for each piece of it. */
export function playOllama(createModel: (baseURL: string) => Model): ModelHarness {
  const line = (fields: object): string =>
    `${JSON.stringify({ model: 'qwen-test', done: false, ...fields })}\n`
  const say = (fields: object): string => line({ message: { role: 'assistant', content: '', ...fields } })
  return httpHarness({
    model: createModel,
    contentType: 'application/x-ndjson',
    lacks: ['reasoning', 'names'],
    reply: ({ text = [], calls = [], stop, usage }) => ({
      events: [
        ...text.map((content) => say({ content })),
        ...calls.map(({ id, name, input }) =>
          say({ tool_calls: [{ id, function: { name, arguments: input } }] }),
        ),
        line({
          ...{ message: { role: 'assistant', content: '' }, done: true },
          done_reason: stop === 'max_tokens' ? 'length' : 'stop',
          prompt_eval_count: usage.inputTokens,
          eval_count: usage.outputTokens,
        }),
      ],
    }),
    refusal: (_status, words) => JSON.stringify({ error: words }),
    toolNames: (body) =>
      (body as { readonly tools: readonly { readonly function: { readonly name: string } }[] }).tools.map(
        (tool) => tool.function.name,
      ),
  })
}
