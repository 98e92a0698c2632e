import { describe, expect, it } from 'vitest'
import { call, result, results, user } from './kit/history.ts'
import type { Loose } from './kit/loose.ts'
import { capital, replyOver, responsesBody as body } from './kit/openai-requests.ts'
import { areRecorded, recordedRequest } from './kit/recorded/files.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'

const assistant = replyOver('responses')
const typed = (name: string, description: string, names: readonly string[], type = 'string') => ({
  ...{ name, description },
  inputSchema: {
    ...{ type: 'object', properties: Object.fromEntries(names.map((one) => [one, { type }])) },
    ...{ required: [...names], additionalProperties: false },
  },
})
const strict = { strictTools: true }

const tide = typed('get_tide', 'Tells the tide.', ['hour'], 'integer')
const wireTide = {
  ...{ type: 'function', name: 'get_tide', description: 'Tells the tide.' },
  ...{ parameters: tide.inputSchema, strict: false },
}
const ask = { role: 'user', content: 'When is the tide?' }
const streamed = { stream: true, store: false, include: ['reasoning.encrypted_content'] }
const search = { type: 'web_search', search_context_size: 'low' }

/** Requests in our words, and their bodies, written by hand. */
const whole: { readonly [what: string]: readonly [Parameters<typeof body>, Loose] } = {
  'a question': [
    [[user('When is the tide?')], {}, { instructions: 'Be brief.' }],
    { model: 'gpt-test', instructions: 'Be brief.', input: [ask], ...streamed },
  ],
  'a tool, to be called strictly, with little thought': [
    [
      [user('When is the tide?')],
      { ...strict, reasoning: { effort: 'low', summary: 'auto' } },
      { instructions: '', tools: [tide], toolChoice: { type: 'any' } },
    ],
    {
      ...{ model: 'gpt-test', input: [ask], ...streamed, reasoning: { effort: 'low', summary: 'auto' } },
      ...{ tools: [{ ...wireTide, strict: true }], tool_choice: 'required' },
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
      input: [
        ask,
        { type: 'function_call', call_id: 'call_w1', name: 'get_tide', arguments: '{"hour":6}' },
        { type: 'function_call_output', call_id: 'call_w1', output: 'Low.' },
      ],
      ...streamed,
      tools: [wireTide],
    },
  ],
  'a search of the vendor’s, and what it leans on': [
    [
      [user('When is the tide?')],
      { providerTools: [search], extraBody: { include: ['web_search_call.action.sources'] } },
      { instructions: '' },
    ],
    {
      ...{ model: 'gpt-test', input: [ask], ...streamed, tools: [search] },
      include: ['reasoning.encrypted_content', 'web_search_call.action.sources'],
    },
  ],
}

/** What was asked when a recording was made, in our words. */
const askedBy: { readonly [file: string]: Parameters<typeof body> } = {
  'background-queued': [
    [user('What is 2 + 2?')],
    { modelId: 'gpt-4o', extraBody: { background: true } },
    { instructions: '' },
  ],
  'code-interpreter': [
    [user("what's 123456 to the power of 123?")],
    {
      ...{ modelId: 'gpt-5', reasoning: { effort: 'low', summary: 'detailed' } },
      providerTools: [{ type: 'code_interpreter', container: { type: 'auto' } }],
    },
    { instructions: '' },
  ],
  'mcp-call': [
    [user('Can you tell me more about the pydantic/pydantic-ai repo? Keep your answer short')],
    {
      modelId: 'o4-mini',
      providerTools: [
        {
          ...{ type: 'mcp', server_label: 'deepwiki', server_url: 'https://mcp.deepwiki.com/mcp' },
          ...{ require_approval: 'never', allowed_tools: ['ask_question', 'read_wiki_structure'] },
        },
      ],
    },
    { instructions: 'You are a helpful assistant.' },
  ],
  'one-function-call': [
    [user('What is the capital of France?')],
    { modelId: 'gpt-4o', ...strict },
    { instructions: '', tools: [capital] },
  ],
  'phase-commentary': [
    [user('What is the capital of PotatoLand?')],
    { modelId: 'gpt-5.5', ...strict },
    {
      instructions: 'Briefly narrate what you are about to do before calling each tool.',
      tools: [capital],
    },
  ],
  'raw-cot-openrouter': [[user('What is 2+2?')], { modelId: 'openai/gpt-oss-20b' }, { instructions: '' }],
  'reasoning-function-call': [
    [user('Calculate 100 * 200 / 3')],
    { modelId: 'gpt-5', ...strict, reasoning: { effort: 'low' }, extraBody: { service_tier: 'flex' } },
    {
      ...{ instructions: '', toolChoice: { type: 'any' } },
      tools: [
        typed('final_result', 'The final response which ends this conversation', ['result'], 'integer'),
      ],
    },
  ],
  'reasoning-web-search': [
    [user('What is the weather in San Francisco today?')],
    {
      ...{ modelId: 'gpt-5', providerTools: [{ type: 'web_search', search_context_size: 'medium' }] },
      extraBody: { include: ['reasoning.encrypted_content', 'web_search_call.action.sources'] },
    },
    { instructions: 'You are a helpful assistant.' },
  ],
  text: [
    [
      user('What is the capital of France?'),
      assistant([
        call(1, 'fc_67e554a1de488191af0831d35cbe082e0794405d35281ae2', {
          ...{ name: 'get_capital', input: { country: 'France' } },
        }),
      ]),
      results(result(1, { name: 'get_capital', content: [{ type: 'text', text: 'Paris' }] })),
    ],
    { modelId: 'gpt-4o', ...strict },
    { instructions: '', tools: [capital] },
  ],
  'tool-search': [
    [user('What is the current USD to EUR exchange rate?')],
    {
      ...{ modelId: 'gpt-5.4', ...strict, providerTools: [{ type: 'tool_search' }] },
      toolFields: { get_exchange_rate: { defer_loading: true }, stock_lookup: { defer_loading: true } },
    },
    {
      instructions: '',
      tools: [
        typed('get_exchange_rate', 'Look up the current exchange rate between two currencies.', [
          'from_currency',
          'to_currency',
        ]),
        typed('stock_lookup', 'Look up stock price by ticker symbol.', ['symbol']),
      ],
    },
  ],
}

/** A body without what says nothing: nulls, blanks, and choices that hold anyway. Storing is a choice of ours. */
function essence({ store: _store, tool_choice: choice, include, ...rest }: Loose): Loose {
  const whole = { ...rest, ...(choice !== 'auto' && { tool_choice: choice }) }
  const extra = (include ?? []).filter((one: string) => one !== 'reasoning.encrypted_content')
  return JSON.parse(
    JSON.stringify({ ...whole, ...(extra.length > 0 && { include: extra }) }, (_, value) =>
      value === null || value === '' ? undefined : value,
    ),
  )
}

describe('a whole request', () => {
  it.each(Object.entries(whole))('for %s has this body', (_, [given, expected]) => {
    const ours = body(...given)
    expect(JSON.parse(JSON.stringify(ours))).toEqual(expected)
    expect(brokenResponsesRules(ours)).toEqual([])
  })

  // On top of those that were written by hand, where recordings are there.
  it.each(areRecorded ? Object.keys(askedBy) : [])('%s is asked as it was then', (name) => {
    const ours = body(...askedBy[name]!)
    expect(essence(ours)).toEqual(essence(recordedRequest(`${name}.request.json`, 'openai-responses')))
    expect(brokenResponsesRules(ours)).toEqual([])
  })
})
