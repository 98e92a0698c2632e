import { expect } from 'vitest'
import type { Loose } from './loose.ts'

/** A difference: why both sides are as they are, and what the AI SDK's side says in place of ours. */
export interface Difference {
  readonly because: string
  readonly theirs: Loose
}

const uncounted = (usage?: object): Difference => ({
  because: 'The AI SDK counts nothing where a reply does not come to its end.',
  theirs: { usage },
})
const otherRefusal: Difference = {
  because: 'The AI SDK has one word for what the model refuses and what a filter withholds.',
  theirs: { stop: 'content_filtered' },
}
const plainReasoning: Difference = {
  because: 'The AI SDK reads summaries of reasoning only, and this server sends its text.',
  theirs: { reasoning: '' },
}
const splicing: Difference = {
  because: 'The AI SDK does not see that a second reply begins: it misses the end of the first.',
  theirs: { failure: ['truncated', true] },
}
const lost = { id: undefined, usage: undefined, stop: undefined }
const unlisted = (theirs: Loose = {}): Difference => ({
  because: 'The AI SDK takes a list for no event. Here its items are events, and an error in it is one.',
  theirs: { ...theirs, failure: ['protocol', true] },
})

const written: { readonly [file: string]: Difference } = {
  'openai-responses/error-in-a-list': unlisted(),
  'openai-compatible/chunks-in-lists': unlisted({ ...lost, text: '' }),
  'openai-compatible/texts-in-a-list': unlisted({ ...lost, text: '' }),
  'openai-compatible/google-error-in-a-list': unlisted(),
  'anthropic/parallel-calls-interleaved': {
    because: 'The AI SDK’s calls are requested at the end of the reply, in the order of their parts.',
    theirs: {
      calls: [
        ['toolu_01', 'get_tide', { hour: 6 }],
        ['toolu_02', 'get_wind', { knots: 7 }],
      ],
    },
  },
  'anthropic/events-and-blocks-of-new-kinds': {
    because: 'The AI SDK ends a stream that holds an event of a kind that it does not know.',
    theirs: { ...lost, text: '', failure: ['protocol', true] },
  },
  'anthropic/lines-that-end-in-returns': {
    because: 'The AI SDK cannot tell that a line is over which ends the stream with a lone return.',
    theirs: { ...lost, usage: {}, failure: ['truncated', true] },
  },
  'anthropic/last-blank-line-missing': uncounted({}),
  'anthropic/usage-of-a-compaction': {
    because:
      'The AI SDK shows the summary of a compaction as text. Here a compaction is a part of the vendor’s own.',
    theirs: { text: 'They spoke of harbours.On we go.' },
  },
  'anthropic/error-in-the-middle': uncounted(),
  'anthropic/error-of-the-server-in-a-call': uncounted(),
  'anthropic/cut-by-a-reset': uncounted(),
  'anthropic/two-replies-spliced': uncounted(),
  'anthropic/cut-in-an-event': uncounted({}),
  'anthropic/cut-without-a-terminator': uncounted({}),
  'anthropic/no-reason-at-the-end': uncounted({ inputTokens: 30 }),
  'anthropic/block-continued-behind-its-end': {
    because: 'The AI SDK continues with a block that has ended, and misses the end of the reply.',
    theirs: { text: 'The light blinkstwice', usage: {}, failure: ['truncated', true] },
  },
  'openai-responses/reasoning-with-a-summary': {
    because:
      'The AI SDK makes each paragraph of a summary a part. Here the item is one, and a blank line parts them.',
    theirs: { reasoning: '**Tides**Low at six.' },
  },
  'openai-responses/reasoning-in-the-open': plainReasoning,
  'openai-responses/custom-tool': {
    because:
      'A custom tool is asked with text. Here it is the field `input` of an object; the AI SDK hands on a JSON text, which is not an object, so that the call is malformed.',
    theirs: { calls: [['call_w1', 'write_log', {}]] },
  },
  'openai-responses/items-that-never-began': {
    because: 'The AI SDK shows the text of a message as it streams, and not what its item holds in the end.',
    theirs: { text: '' },
  },
  'openai-responses/last-blank-line-missing': {
    because: 'The AI SDK discards an event that no blank line ends. OpenAI’s client reads it.',
    theirs: { ...lost, failure: ['truncated', true] },
  },
  'openai-responses/web-search-with-citations': {
    because: 'The AI SDK does not count the searches of this wire.',
    theirs: { usage: { inputTokens: 30, outputTokens: 12 } },
  },
  'openai-responses/mcp-approval': {
    because:
      'A request for an approval is a call to be decided here. Of the AI SDK it is a part of its own, which is kept in the reply.',
    theirs: { calls: [], stop: 'end' },
  },
  'openai-responses/refusal': otherRefusal,
  'openai-responses/failed-for-lack-of-credit': {
    because:
      'The AI SDK makes an answer of status 429 of the failed response, and `fromAiSdk` does not read the code in it.',
    theirs: { failure: ['rate_limited', true] },
  },
  'openai-responses/failed-on-a-long-history': {
    because: 'As above, of status 400.',
    theirs: { failure: ['invalid_request', false] },
  },
  'openai-responses/two-replies-spliced': splicing,
  'openai-responses/call-behind-its-end': {
    because:
      'The AI SDK passes over a piece of a call that has ended, and its calls wait for the end of the reply.',
    theirs: { calls: [], failure: ['truncated', true] },
  },
  'openai-responses/refused-503': {
    because: '`fromAiSdk` knows the type of this answer, and not its code.',
    theirs: { failure: ['server', true] },
  },
  'openai-chat/refusal': otherRefusal,
  'openai-chat/several-choices': {
    because: 'The AI SDK puts all choices into one text. Here the first one is the reply.',
    theirs: { text: 'Never Slack shown.water.', stop: 'max_tokens' },
  },
  'openai-chat/two-replies-spliced': splicing,
  'openai-compatible/deepseek-cache-beside-the-details': {
    because: 'The AI SDK reads the details of a count only.',
    theirs: { usage: { inputTokens: 30, outputTokens: 12 } },
  },
  'openai-compatible/deepseek-gave-up': {
    because: 'The AI SDK hands on a reason that it does not know, and it is `other` then.',
    theirs: { failure: undefined, id: 'chatcmpl-w1', stop: 'other' },
  },
  'openai-compatible/groq-call-in-one-chunk': {
    because: 'The AI SDK does not read the counts that Groq puts into a field of its own.',
    theirs: { usage: undefined },
  },
  'openai-compatible/mistral-context-full': {
    because: 'As for a reason that the AI SDK does not know.',
    theirs: { stop: 'other' },
  },
  'openai-compatible/reason-of-calls-without-a-call': {
    because: 'A call that the server lost makes the reply a failed one here, to be asked for again.',
    theirs: { failure: undefined, id: 'chatcmpl-w1', stop: 'tool_use' },
  },
  'openai-compatible/call-of-the-first-kind': {
    because: 'The AI SDK does not know calls as they were before there were tools.',
    theirs: { calls: [] },
  },
}

const recorded: { readonly [file: string]: Difference } = {
  'anthropic/compaction-beta.sse': {
    because:
      'The AI SDK shows the summary of a compaction as text. Here a compaction is a part of the vendor’s own.',
    theirs: { text: expect.stringMatching(/^The user provided a very long context[^]*Hello! 👋$/) },
  },
  'anthropic/cut-without-message-stop.sse': {
    because: 'The AI SDK tells of tokens at the end of a reply only, and this one has none.',
    theirs: { usage: {} },
  },
  'anthropic/error-overloaded-mid-stream.sse': {
    because: 'As above: after an error in the stream nothing is counted.',
    theirs: { usage: undefined },
  },
  'anthropic/gateway-spliced-message-start.jsonl': {
    because: 'As above.',
    theirs: { usage: undefined },
  },
  'openai-responses/reasoning-web-search.sse': {
    because: 'The AI SDK does not count the searches of this wire.',
    theirs: { usage: { inputTokens: 9463, outputTokens: 582, cacheReadTokens: 8320, reasoningTokens: 512 } },
  },
  'openai-responses/custom-tool.jsonl': {
    because:
      'A custom tool is asked with text. Here it is the field `input` of an object; the AI SDK hands on a JSON text, which is not an object, so that the call is malformed.',
    theirs: { calls: [['call_custom_sql_001', 'write_sql', {}]] },
  },
  'openai-responses/lmstudio-tool-call.jsonl': {
    because: 'The AI SDK reads summaries of reasoning only, and this server sends its text.',
    theirs: { reasoning: '' },
  },
  'openai-responses/raw-cot-openrouter.sse': { because: 'As above.', theirs: { reasoning: '' } },
  'openai-responses/mcp-approval-request.jsonl': {
    because:
      'A request for an approval is a call to be decided here. Of the AI SDK it is a part of its own, which is kept in the reply.',
    theirs: { calls: [], stop: 'end' },
  },
  'openai-responses/refusal.sse': {
    because: 'The AI SDK has one word for what the model refuses and what a filter withholds.',
    theirs: { stop: 'content_filtered' },
  },
  'openai-chat/refusal.sse': { because: 'As above.', theirs: { stop: 'content_filtered' } },
  'openai-chat/n3-choices.sse': {
    because: 'The AI SDK puts all choices into one text. Here the first one is the reply.',
    theirs: { text: expect.stringMatching(/^\{"\{"\{"citycitycity/) },
  },
}

/** What the AI SDK's own providers make of a stream otherwise, by its folder and file. */
export const differences: { readonly [file: string]: Difference } = { ...written, ...recorded }
