import type { Message, ModelRequest } from '@tallystick/core'
import type {
  AssistantMessage,
  AssistantPart,
  ModelRef,
  Outcome,
  ResultPart,
  StopReason,
  ToolCallId,
  ToolCallPart,
  UserPart,
  ToolResult,
} from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import type { Loose } from './loose.ts'
import { anyText } from '../../../../scripts/testing/any-text.ts'

export const own: ModelRef = { provider: 'anthropic', api: 'messages', modelId: 'claude-test-1' }
export const ownOpaque = (block: object, more: object = {}) => ({
  provider: 'anthropic',
  api: 'messages',
  data: { block: block as Loose, ...more },
})

const models: fc.Arbitrary<ModelRef> = fc.constantFrom(
  own,
  own,
  { ...own, modelId: 'claude-test-2' },
  { provider: 'openai', api: 'responses', modelId: 'gpt-test' },
)

const words = fc.oneof(
  fc.constantFrom('', ' ', '\n\n', 'Hello', 'So be it. ', 'half a pair \ud83d', '서울'),
  anyText({ maxLength: 12 }),
)
const text: fc.Arbitrary<{ type: 'text'; text: string }> = fc.record({
  type: fc.constant('text'),
  text: words,
})
const media: fc.Arbitrary<ResultPart> = fc.constantFrom<ResultPart>(
  { type: 'image', mediaType: 'image/png', data: 'aGk=' },
  { type: 'image', mediaType: 'image/svg+xml', data: 'aGk=' },
  { type: 'image', mediaType: 'image/png', url: 'https://example.org/a.png' },
  { type: 'file', mediaType: 'application/pdf', data: 'aGk=', name: 'a.pdf' },
  { type: 'file', mediaType: 'text/plain; charset=utf-8', data: 'aGk=' },
  { type: 'file', mediaType: 'text/plain', data: '' },
  { type: 'file', mediaType: 'application/zip', data: 'aGk=', name: 'a.zip' },
)
const userParts: fc.Arbitrary<UserPart[]> = fc.array(fc.oneof({ weight: 4, arbitrary: text }, media), {
  maxLength: 3,
})

const foreign = { provider: 'openai', api: 'responses', data: { id: 'rs_1', encrypted_content: 'x' } }

/** Parts that are no calls, some from here, some from elsewhere, some cut. Server tools may lack their other half. */
const quietPart: fc.Arbitrary<AssistantPart> = fc.oneof(
  text,
  fc.constantFrom<AssistantPart>(
    { type: 'text', text: 'cited', opaque: ownOpaque({ citations: [{ type: 'char_location' }] }) },
    { type: 'reasoning', text: 'hm', opaque: ownOpaque({ type: 'thinking', signature: 'sig==' }) },
    { type: 'reasoning', text: '', opaque: ownOpaque({ type: 'redacted_thinking', data: 'ZGF0YQ==' }) },
    { type: 'reasoning', text: 'never signed' },
    { type: 'reasoning', text: 'elsewhere', opaque: foreign },
    { type: 'provider', kind: 'web_search_call', opaque: foreign },
    { type: 'provider', kind: 'container', opaque: ownOpaque({}, { container: { id: 'container_1' } }) },
  ),
  fc.constantFrom<AssistantPart>(serverUse(''), serverUse(''), serverResult(''), serverResult('')),
)

function serverUse(id: string): AssistantPart {
  const block = { type: 'server_tool_use', id, name: 'web_search', input: {} }
  return { type: 'provider', kind: block.type, opaque: ownOpaque(block) }
}

function serverResult(id: string): AssistantPart {
  const block = { type: 'web_search_tool_result', tool_use_id: id, content: [] }
  return { type: 'provider', kind: block.type, opaque: ownOpaque(block) }
}

/** Gives each use of a server tool an id of its own, and each result the oldest use that waits, or one that is not there. */
function withServerIds(exchanges: readonly Exchange[]): readonly Exchange[] {
  const waiting: string[] = []
  let count = 0
  const identified = (part: AssistantPart): AssistantPart => {
    if (part.type !== 'provider') return part
    if (part.kind === 'web_search_tool_result')
      return serverResult(waiting.shift() ?? `srvtoolu_lost_${++count}`)
    if (part.kind !== 'server_tool_use') return part
    waiting.push(`srvtoolu_${++count}`)
    return serverUse(waiting.at(-1)!)
  }
  return exchanges.map((one) => ({ ...one, parts: one.parts.map(identified) }))
}

const callDraft = fc.record({
  providerCallId: fc.constantFrom('toolu_1', 'toolu_2', 'call_0', '', 'functions.read:0', 'x'.repeat(80)),
  name: fc.constantFrom('get_weather', 'files/read', 'files.read', 'web_search', '', 'x'.repeat(90)),
  input: fc.constantFrom({}, { city: 'Seoul' }, { lone: '\udc00', deep: [{ more: '\ud83d' }] }),
  called: fc.boolean(),
})

const outcomes: fc.Arbitrary<Outcome> = fc.constantFrom(
  'success',
  'success',
  'failed',
  'denied',
  'cancelled',
  'interrupted',
  'skipped',
)

interface Exchange {
  readonly user: UserPart[] | undefined
  readonly model: ModelRef
  readonly parts: readonly AssistantPart[]
  readonly calls: readonly (typeof callDraft extends fc.Arbitrary<infer T> ? T : never)[]
  readonly results: readonly { readonly outcome: Outcome; readonly content: ResultPart[] }[]
  readonly stopReason: StopReason
  readonly partial: boolean
}

const exchange: fc.Arbitrary<Exchange> = fc.record({
  user: fc.option(userParts, { nil: undefined, freq: 3 }),
  model: models,
  parts: fc.array(quietPart, { maxLength: 4 }),
  calls: fc.array(callDraft, { maxLength: 3 }),
  results: fc.array(
    fc.record({ outcome: outcomes, content: fc.array(fc.oneof(text, media), { maxLength: 2 }) }),
    { minLength: 3, maxLength: 3 },
  ),
  stopReason: fc.constantFrom('end', 'tool_use', 'paused', 'cancelled', 'max_tokens'),
  partial: fc.boolean(),
})

/** Histories as the runtime makes them: whatever a reply held, each of its calls has its result right after. */
const histories: fc.Arbitrary<readonly Message[]> = fc
  .record({
    exchanges: fc.array(exchange, { maxLength: 6 }),
    last: fc.option(userParts, { nil: undefined, freq: 3 }),
  })
  .map(({ exchanges, last }) => {
    const messages = withServerIds(exchanges).flatMap((one, place) => messagesOf(one, place))
    return last === undefined ? messages : [...messages, { role: 'user' as const, parts: last }]
  })

function messagesOf(
  { user, model, parts, calls, results, stopReason, partial }: Exchange,
  place: number,
): Message[] {
  const callParts = calls.map(({ called, ...call }, ordinal): ToolCallPart => {
    const toolCallId = `call_${'0'.repeat(32)}_${place + 1}_1_${ordinal + 1}` as ToolCallId
    const tool_id = called && model === own ? serverUseIn(parts) : undefined
    const caller = { type: 'code_execution_20250825', tool_id }
    return { type: 'tool_call', toolCallId, ...call, ...(tool_id && { opaque: ownOpaque({ caller }) }) }
  })
  const assistant: AssistantMessage = {
    role: 'assistant',
    parts: [...parts, ...callParts],
    model,
    stopReason,
    partial,
  }
  const answers = callParts.map(({ toolCallId, name }, ordinal): ToolResult => ({
    toolCallId,
    name,
    ...results[ordinal]!,
  }))
  return [
    ...(user ? [{ role: 'user' as const, parts: user }] : []),
    assistant,
    ...(answers.length > 0 ? [{ role: 'tool' as const, results: answers }] : []),
  ]
}

function serverUseIn(parts: readonly AssistantPart[]): string | undefined {
  const use = parts.findLast((part) => part.type === 'provider' && part.kind === 'server_tool_use')
  return (use?.opaque?.data as Loose)?.block.id
}

/** Whole requests around such histories. */
export const requests: fc.Arbitrary<ModelRequest> = fc.record({
  instructions: fc.constantFrom('', ' ', 'Be brief.', 'half \ud800 a pair'),
  messages: histories,
  tools: fc
    .uniqueArray(fc.constantFrom('get_weather', 'files/read', 'files.read', 'web_search'), { maxLength: 3 })
    .map((names) =>
      names.map((name) => ({ name, description: name === 'get_weather' ? '' : 'Does it.', inputSchema: {} })),
    ),
  toolChoice: fc.constantFrom({ type: 'auto' }, { type: 'none' }, { type: 'any' }),
  parallelToolCalls: fc.boolean(),
  maxOutputTokens: fc.constantFrom(500, 1500, 20_000),
})
