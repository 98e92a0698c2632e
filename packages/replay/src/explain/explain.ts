import {
  ConfigurationError,
  RunNotFoundError,
  type Ledger,
  type ModelRequest,
  type RunId,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { omitUndefined, requireLedger } from '@tallystick/core/kit'
import { requireTextId } from '@tallystick/core/store-kit'
import {
  definitionTokens,
  evolve,
  messagesOf,
  messageTokens,
  modelRequest,
  type StreamingState,
} from '@tallystick/core/machine'
import { costOf, type AgentDefinition, type EventOf } from '@tallystick/core/vocabulary'
import { explainedAttempts } from './explained-attempts.ts'
import type { ExplainedItem, Explanation, MessageOrigin, ReplacedMessage } from './explanation.ts'
import { HistoryOrigins, matched } from './history-origins.ts'

/** What is known right after the `model_call_started` of an attempt. */
interface Asked {
  readonly started: EventOf<'model_call_started'>
  readonly state: StreamingState
  readonly history: readonly MessageOrigin[]
  /** What left the history without anything in its place. */
  readonly dropped: readonly MessageOrigin[]
  /** The event that says the definition in force. */
  readonly definitionSeq: number
}

/**
 * Explains the model's request of a turn. For the instructions, the tools and each message it returns the events that
 * made it, what a summary replaced, and its tokens (estimated) and cost in US dollars (its share of the recorded cost
 * of the input). Rejects with `RunNotFoundError` for an unknown run, and with `ConfigurationError` for a turn that the
 * run did not have.
 */
export async function explain(ledger: Ledger, runId: RunId, turn: number): Promise<Explanation> {
  requireLedger('explain', ledger)
  requireTextId('explain', runId)
  if ((await ledger.head(runId)) === undefined) throw new RunNotFoundError(runId)
  const origins = new HistoryOrigins()
  const ofTurn: RuntimeEvent[] = []
  let state: RunState | undefined
  let asked: Asked | undefined
  let definitionSeq = 1
  for await (const event of ledger.read(runId)) {
    if (event.turn > turn) break
    const before = state
    state = evolve(state, event)
    if (state.definition !== before?.definition) definitionSeq = event.seq
    origins.follow(event, state.history === before?.history ? undefined : messagesOf(state.history))
    if (event.turn !== turn) continue
    ofTurn.push(event)
    if (event.type === 'model_call_started' && state.phase === 'streaming') {
      asked = { started: event, state, history: origins.origins, dropped: origins.dropped, definitionSeq }
    }
  }
  if (asked) return explanationOf(asked, ofTurn)
  throw new ConfigurationError(
    `Run ${runId} has no turn ${turn} in which a model was asked, so there is no request to explain. Turns count from 1; ` +
      'the state of the run says how many there were.',
  )
}

function explanationOf({ started, state, ...from }: Asked, ofTurn: readonly RuntimeEvent[]): Explanation {
  const { runId, agent, definition, attempt } = state
  const request = modelRequest(state)
  const { found, lost } = matched(from.history, request.messages, { wordForWord: true })
  const messages = request.messages.map(
    (message): MessageOrigin => found.get(message) ?? { message, seqs: [started.seq], replaced: [] },
  )
  const items = [
    ...explainedItems(definition, request, { started, definitionSeq: from.definitionSeq }),
    ...messages.map(messageItem),
  ]
  const estimated = items.reduce((sum, { tokens }) => sum + tokens, 0)
  const attempts = explainedAttempts(ofTurn)
  const { usage } = attempts.at(-1) ?? {}
  const inputUsd = inputCost(ofTurn, started)
  return {
    runId,
    turn: started.turn,
    agent,
    model: attempt.model,
    requestDigest: started.requestDigest,
    toolChoice: started.toolChoice,
    ...omitUndefined({ additions: started.additions }),
    attempts,
    items: items.map((item) => ({
      ...item,
      ...omitUndefined({
        costUsd: inputUsd === undefined ? undefined : (inputUsd * item.tokens) / estimated,
      }),
    })),
    leftOut: [...from.dropped, ...lost].map(replacedMessage),
    tokens: { estimated, ...omitUndefined({ billed: usage?.inputTokens }) },
  }
}

/** Returns the parts of a request apart from the history. */
function explainedItems(
  definition: AgentDefinition,
  request: ModelRequest,
  { started, definitionSeq }: Pick<Asked, 'started' | 'definitionSeq'>,
): readonly ExplainedItem[] {
  const { change } = started
  const { instructions, tools, outputSchema } = request
  const none = definitionTokens({ ...definition, instructions: '', tools: [] })
  const textTokens = (text: string): number =>
    definitionTokens({ ...definition, instructions: text, tools: [] }) - none
  const explained: ExplainedItem[] = [
    {
      kind: 'instructions',
      seqs: change?.instructions === undefined ? [definitionSeq] : [started.seq],
      tokens: textTokens(instructions),
    },
    {
      kind: 'tools',
      seqs: change?.tools === undefined ? [definitionSeq] : [definitionSeq, started.seq],
      tokens: definitionTokens({ ...definition, instructions: '', tools }),
    },
  ]
  if (outputSchema === undefined) return explained
  const tokens = textTokens(JSON.stringify(outputSchema))
  return [...explained, { kind: 'output_schema', seqs: [definitionSeq], tokens }]
}

function messageItem({ message, seqs, replaced }: MessageOrigin, index: number): ExplainedItem {
  return {
    kind: 'message',
    message,
    index,
    seqs,
    tokens: messageTokens(message),
    ...(replaced.length > 0 && { replaced: replaced.map(replacedMessage) }),
  }
}

function replacedMessage({ message, seqs, replaced }: MessageOrigin): ReplacedMessage {
  return {
    role: message.role,
    seqs,
    tokens: messageTokens(message),
    ...(replaced.length > 0 && { replaced: replaced.map(replacedMessage) }),
  }
}

/** What the input of an attempt cost, at the price on record. */
function inputCost(
  ofTurn: readonly RuntimeEvent[],
  { attempt }: EventOf<'model_call_started'>,
): number | undefined {
  const last = ofTurn.findLast((event) => event.type === 'usage_updated' && event.attempt === attempt)
  if (last?.type !== 'usage_updated' || last.price === undefined) return undefined
  const { outputTokens: _output, reasoningTokens: _reasoning, webSearches: _searches, ...input } = last.usage
  return input.inputTokens === undefined ? undefined : costOf(last.price, input)
}
