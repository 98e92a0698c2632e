/** Events of OpenAI's wires, written by hand: short ways to say the long forms. */
type Fields = Readonly<Record<string, unknown>>

/** Numbers the events as OpenAI does. */
export const counted = (...events: readonly (object | readonly object[])[]): object[] =>
  events.flat().map((event, sequence_number) => ({ ...event, sequence_number }))

const lifecycle = (type: string, response: Fields) => ({ type: `response.${type}`, response })
export const created = (more: Fields = {}) =>
  lifecycle('created', { id: 'resp_1', model: 'gpt-test-1', status: 'in_progress', output: [], ...more })
const usageOf = (input_tokens: number, output_tokens: number) => ({ input_tokens, output_tokens })
export const completed = (more: Fields = {}) =>
  lifecycle('completed', { id: 'resp_1', status: 'completed', usage: usageOf(12, 20), ...more })
export const incomplete = (reason: string | undefined, more: Fields = {}) =>
  lifecycle('incomplete', {
    id: 'resp_1',
    status: 'incomplete',
    usage: usageOf(12, 20),
    ...(reason && { incomplete_details: { reason } }),
    ...more,
  })
export const failedResponse = (code: string, message: string, more: Fields = {}) =>
  lifecycle('failed', { id: 'resp_1', status: 'failed', error: { code, message }, ...more })

export const added = (output_index: number, item: Fields) => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
export const itemDone = (output_index: number, item: Fields) => ({
  type: 'response.output_item.done',
  output_index,
  item,
})
export const delta = (kind: string, output_index: number, text: string, more: Fields = {}) => ({
  type: `response.${kind}.delta`,
  output_index,
  delta: text,
  ...more,
})
export const said = (output_index: number, text: string, content_index = 0) =>
  delta('output_text', output_index, text, { content_index })
export const args = (output_index: number, text: string) =>
  delta('function_call_arguments', output_index, text)

const messageItem = (at: number, text: string, more: Fields = {}) => ({
  type: 'message',
  id: `msg_${at}`,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
  ...more,
})
export const message = (at: number, ...texts: string[]) => [
  added(at, { type: 'message', id: `msg_${at}`, role: 'assistant', status: 'in_progress', content: [] }),
  {
    type: 'response.content_part.added',
    output_index: at,
    content_index: 0,
    part: { type: 'output_text', text: '', annotations: [] },
  },
  ...texts.map((text) => said(at, text)),
  { type: 'response.output_text.done', output_index: at, content_index: 0, text: texts.join('') },
  itemDone(at, messageItem(at, texts.join(''))),
]
export const reasoning = (at: number, encrypted_content: string | undefined, ...summary: string[]) => [
  added(at, { type: 'reasoning', id: `rs_${at}`, summary: [] }),
  ...summary.map((text, summary_index) => delta('reasoning_summary_text', at, text, { summary_index })),
  itemDone(at, {
    type: 'reasoning',
    id: `rs_${at}`,
    ...(encrypted_content && { encrypted_content }),
    summary: summary.map((text) => ({ type: 'summary_text', text })),
  }),
]
export const functionCall = (at: number, call_id: string, name: string, ...pieces: string[]) => [
  added(at, { type: 'function_call', id: `fc_${at}`, call_id, name, arguments: '', status: 'in_progress' }),
  ...pieces.map((piece) => args(at, piece)),
  itemDone(at, {
    type: 'function_call',
    id: `fc_${at}`,
    call_id,
    name,
    arguments: pieces.join(''),
    status: 'completed',
  }),
]
export const webSearch = (at: number) => [
  added(at, { type: 'web_search_call', id: `ws_${at}`, status: 'in_progress' }),
  { type: 'response.web_search_call.searching', output_index: at },
  itemDone(at, {
    type: 'web_search_call',
    id: `ws_${at}`,
    status: 'completed',
    action: { query: 'weather' },
  }),
]

/** A reply with a bit of everything, multi-byte characters included. */
export const richResponse: readonly object[] = counted(
  created(),
  lifecycle('in_progress', { id: 'resp_1' }),
  reasoning(0, 'ZW5j', 'The user greets me — in Seoul it is 서울 weather 🌦️.', 'So I look.'),
  webSearch(1),
  reasoning(2, 'ZW5jMg=='),
  message(3, 'Grüß dich! ', 'Let me look', ' … 👋'),
  functionCall(4, 'call_1', 'get_weather', '{"city":"Se', 'oul","days"', ':3}'),
  functionCall(5, 'call_2', 'get_time'),
  completed({
    usage: {
      input_tokens: 120,
      input_tokens_details: { cached_tokens: 100, cache_write_tokens: 8 },
      output_tokens: 64,
      output_tokens_details: { reasoning_tokens: 32 },
      total_tokens: 184,
    },
  }),
)

const chunk = (choices: unknown, more: Fields = {}) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  model: 'gpt-test-1',
  choices,
  ...more,
})
export { chunk }
export const choice = (given: Fields, finish_reason: string | null = null) =>
  chunk([{ index: 0, delta: given, finish_reason }])
export const role = choice({ role: 'assistant', content: '' })
export const content = (text: string) => choice({ content: text })
export const piece = (call: Fields) => choice({ tool_calls: [call] })
export const callPieces = (index: number, id: string, name: string, ...pieces: string[]) => [
  piece({ index, id, type: 'function', function: { name, arguments: '' } }),
  ...pieces.map((text) => piece({ index, function: { arguments: text } })),
]
export const finish = (reason: string) => choice({}, reason)
export const chatUsage = (prompt_tokens: number, completion_tokens: number) =>
  chunk([], { usage: { prompt_tokens, completion_tokens } })

/** A chat reply with a bit of everything. */
export const richChat: readonly object[] = [
  role,
  choice({ reasoning_content: 'The user greets me — ' }),
  choice({ reasoning_content: '서울 🌦️' }),
  content('Grüß dich! '),
  content('Let me look … 👋'),
  ...callPieces(0, 'call_1', 'get_weather', '{"city":"Se', 'oul","days"', ':3}'),
  ...callPieces(1, 'call_2', 'get_time', ''),
  finish('tool_calls'),
  chunk([], {
    usage: {
      prompt_tokens: 120,
      prompt_tokens_details: { cached_tokens: 100 },
      completion_tokens: 64,
      completion_tokens_details: { reasoning_tokens: 32 },
    },
  }),
]
