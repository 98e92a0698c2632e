import { describe, expect, it } from 'vitest'
import { brokenChatRules } from './kit/chat-rules.ts'
import { call, result, results, user } from './kit/history.ts'
import type { Loose } from './kit/loose.ts'
import { capital, chatBody as body, replyOver } from './kit/openai-requests.ts'
import { areRecorded, recordedRequest } from './kit/recorded/files.ts'

const assistant = replyOver('chat')
const question = user('What is the capital of the UK? Use the tool, then answer.')
const weather = (name: string, description: string, properties: object) => ({
  ...{ name, description },
  inputSchema: {
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  } as Loose,
})

const tide = {
  ...{ name: 'get_tide', description: 'Tells the tide.' },
  inputSchema: {
    ...{ type: 'object', properties: { hour: { type: 'integer' } } },
    ...{ required: ['hour'], additionalProperties: false },
  } as Loose,
}
const wireTide = {
  type: 'function',
  function: { name: 'get_tide', description: 'Tells the tide.', parameters: tide.inputSchema },
}
const ask = { role: 'user', content: 'When is the tide?' }
const streamed = { stream: true, stream_options: { include_usage: true } }

/** Requests in our words, and their bodies, written by hand. */
const whole: { readonly [what: string]: readonly [Parameters<typeof body>, Loose] } = {
  'a question': [
    [[user('When is the tide?')], { modelId: 'gpt-test' }, { instructions: 'Be brief.' }],
    { model: 'gpt-test', messages: [{ role: 'system', content: 'Be brief.' }, ask], ...streamed },
  ],
  'a tool, to be called strictly': [
    [[user('When is the tide?')], { strictTools: true }, { instructions: '', tools: [tide] }],
    {
      ...{ model: 'gpt-test', messages: [ask], ...streamed },
      tools: [{ ...wireTide, function: { ...wireTide.function, strict: true } }],
    },
  ],
  'a conversation after a call': [
    [
      [
        user('When is the tide?'),
        assistant([call(1, 'call_w1', { name: 'get_tide', input: { hour: 6 } })]),
        results(result(1, { name: 'get_tide', content: [{ type: 'text', text: 'Low.' }] })),
      ],
      {},
      { instructions: '', tools: [tide] },
    ],
    {
      model: 'gpt-test',
      messages: [
        ask,
        {
          ...{ role: 'assistant', content: null },
          tool_calls: [
            { id: 'call_w1', type: 'function', function: { name: 'get_tide', arguments: '{"hour":6}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_w1', content: 'Low.' },
      ],
      ...streamed,
      tools: [wireTide],
    },
  ],
  'few tokens, of OpenRouter': [
    [
      [user('When is the tide?')],
      { server: 'openrouter' },
      { instructions: 'Be brief.', maxOutputTokens: 10 },
    ],
    {
      ...{ model: 'gpt-test', messages: [{ role: 'system', content: 'Be brief.' }, ask] },
      ...{ ...streamed, max_tokens: 10 },
    },
  ],
  'a field of the user’s own, of a server that takes no word about usage': [
    [
      [user('When is the tide?')],
      { server: 'vllm', ways: { streamUsage: false }, extraBody: { temperature: 0.5 } },
      { instructions: '' },
    ],
    { model: 'gpt-test', messages: [ask], stream: true, temperature: 0.5 },
  ],
}

/** What was asked when a recording was made, in our words. */
const askedBy: { readonly [path: string]: Parameters<typeof body> } = {
  'openai-chat/gpt5-moderation-chunk': [
    [user('What is the capital of France?')],
    { modelId: 'gpt-5', extraBody: { moderation: { model: 'omni-moderation-latest' } } },
    { instructions: '' },
  ],
  'openai-chat/one-tool-many-deltas': [
    [user('What is 1231 * 2331?')],
    { modelId: 'gpt-4o-mini' },
    {
      instructions: '',
      tools: [
        {
          ...{ name: 'multiply', description: 'Multiply two numbers.' },
          inputSchema: {
            ...{ type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } } },
            required: ['a', 'b'],
          },
        },
      ],
    },
  ],
  'openai-chat/one-tool-usage': [
    [question],
    { modelId: 'gpt-4o-mini', strictTools: true },
    { instructions: '', tools: [capital] },
  ],
  'openai-chat/parallel-tools-otel': [
    [user("What's the weather in Seattle and San Francisco today?")],
    { modelId: 'gpt-4o-mini' },
    {
      instructions: "You're a helpful assistant.",
      tools: [
        weather('get_current_weather', 'Get the current weather in a given location', {
          location: { type: 'string', description: 'The city and state, e.g. Boston, MA' },
        }),
      ],
    },
  ],
  'openai-chat/text-usage': [
    [
      question,
      assistant([
        call(1, 'call_ZR5UUuTt3pf61kjwAJIYdVMj', { name: 'get_capital', input: { country: 'UK' } }),
      ]),
      results(result(1, { name: 'get_capital', content: [{ type: 'text', text: 'London' }] })),
    ],
    { modelId: 'gpt-4o-mini', strictTools: true },
    { instructions: '', tools: [capital] },
  ],
  'openai-compatible/ollama-v1-gpt-oss-tool': [
    [user("What's the weather in Berlin? (52.5200, 13.4050)")],
    { modelId: 'gpt-oss:120b', server: 'ollama' },
    {
      instructions: '',
      tools: [
        {
          ...{ name: 'weather', description: 'Gets current weather for a location' },
          inputSchema: {
            ...weather('', '', {
              latitude: { type: 'string', description: 'Latitude (e.g., 52.5200)' },
              longitude: { type: 'string', description: 'Longitude (e.g., 13.4050)' },
            }).inputSchema,
            strict: true,
          },
        },
      ],
    },
  ],
  'openai-compatible/openrouter-mid-stream-error': [
    [user('Hello there')],
    {
      modelId: 'minimax/minimax-m2:free',
      server: 'openrouter',
      ways: { maxTokensField: 'max_completion_tokens' },
    },
    { instructions: '', maxOutputTokens: 10 },
  ],
  'openai-compatible/vllm-text-length': [
    [user('Tell me a joke about OpenTelemetry')],
    {
      ...{ modelId: 'facebook/opt-125m', server: 'vllm', ways: { streamUsage: false } },
      extraBody: { n: 1, temperature: 0.7 },
    },
    { instructions: 'You are a helpful assistant ', maxOutputTokens: 20 },
  ],
}

/** A body without what says nothing: blanks, and a choice that holds anyway. */
function essence({ tool_choice: choice, ...rest }: Loose): Loose {
  const whole = { ...rest, ...(choice !== 'auto' && { tool_choice: choice }) }
  return JSON.parse(JSON.stringify(whole, (_, value) => (value === '' ? undefined : value)))
}

describe('a whole request', () => {
  it.each(Object.entries(whole))('for %s has this body', (_, [given, expected]) => {
    const ours = body(...given)
    expect(JSON.parse(JSON.stringify(ours))).toEqual(expected)
    expect(brokenChatRules(ours)).toEqual([])
  })

  // On top of those that were written by hand, where recordings are there.
  it.each(areRecorded ? Object.keys(askedBy) : [])('%s is asked as it was then', (path) => {
    const [folder, name] = path.split('/')
    const ours = body(...askedBy[path]!)
    expect(essence(ours)).toEqual(essence(recordedRequest(`${name}.request.json`, folder!)))
    expect(brokenChatRules(ours)).toEqual([])
  })
})
