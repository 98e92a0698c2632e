import type { RuntimeEvent, Usage } from '@tallystick/core'
import { computeRequestDigest } from '@tallystick/core/internal'
import { toModelRequest } from '@tallystick/core/machine'
import type { EventOf, EventType } from '@tallystick/core/vocabulary'
import {
  explain,
  type ExplainedItem,
  type Explanation,
  type ReplacedMessage,
} from '@tallystick/replay/compare'
import { formatJson, formatMessage, formatTools } from './content.ts'
import { createReadLedger } from './read-ledger.ts'
import type { RunModel } from './run-model.ts'
import { type CutText, cutText } from './values.ts'

/** Where a part of a request came from. `turn`: the agent's `prepareTurn` made it for this turn alone. */
export const origins = [
  ...(['instructions', 'tools', 'schema', 'user', 'reply', 'results', 'summary', 'edit', 'turn'] as const),
] as const
export type Origin = (typeof origins)[number]

/** A part of a request. */
export interface SawPart {
  readonly key: string
  readonly origin: Origin
  readonly text: CutText
  /** The events that it came from or passed through. */
  readonly seqs: readonly number[]
  /** An estimate of its input tokens, and how many of them the provider read from its cache. */
  readonly tokens: number
  readonly cached: number
  readonly costUsd?: number
  /** Against the turn before; absent in the first. */
  readonly change?: 'same' | 'added' | 'changed'
  /** What it said in the turn before, if it has changed. */
  readonly before?: CutText
  /** How many earlier messages it stands for. */
  readonly replaced?: number
}

/** An attempt of the turn's call. */
export interface SawAttempt {
  readonly attempt: number
  readonly seq: number
  readonly model: string
  readonly outcome: string
  readonly failure?: string
  readonly retryAt?: number
  readonly durationMs?: number
  readonly usage?: Usage
  readonly costUsd?: number
  /** The digest of its request, as recorded and of the request rebuilt here; `gone` if content was removed. */
  readonly digest: {
    readonly recorded: string
    readonly rebuilt?: string
    readonly is: 'same' | 'other' | 'gone'
  }
}

/** The request of a turn. */
export interface Saw {
  readonly turn: number
  /** Turns in which a model was asked, with the event of the first attempt. */
  readonly turns: readonly { readonly turn: number; readonly seq: number }[]
  readonly agent: string
  readonly model: string
  readonly parts: readonly SawPart[]
  /** Parts of the turn before that are gone. */
  readonly removed: readonly SawPart[]
  readonly leftOut: readonly {
    readonly role: string
    readonly seqs: readonly number[]
    readonly tokens: number
  }[]
  readonly attempts: readonly SawAttempt[]
  readonly tokens: { readonly estimated: number; readonly billed?: number; readonly cached?: number }
  readonly toolChoice: string
  /** Fields that the adapter adds to the request, or writes in place of what is shown; their values are not on record. */
  readonly additions: readonly {
    readonly field: string
    readonly option: string
    readonly replaces: boolean
  }[]
  /** What the turn itself overrides, as its event names it. */
  readonly overrides: readonly string[]
  readonly settings?: string
}

/** What of a run does not change any more: explanations of turns that are over. */
const known = new WeakMap<RunModel, Map<string, Promise<Explanation>>>()

/** Returns what the model was shown in a turn; `undefined` if no model was asked in it. */
export async function describeSaw(model: RunModel, turn: number): Promise<Saw | undefined> {
  const starts = model.events.filter((event) => event.type === 'model_call_started')
  const started = starts.findLast((event) => event.turn === turn)
  if (started === undefined) return undefined
  const turns = starts
    .filter(({ attempt }) => attempt === 1)
    .map((event) => ({ turn: event.turn, seq: event.seq }))
  const before = turns.findLast((each) => each.turn < turn)
  const explanation = await explainTurn(model, turn)
  const parts = listParts(model, explanation, started)
  const earlier = before === undefined ? undefined : await listPartsOf(model, starts, before.turn)
  const { parts: compared, removed } = earlier ? compareParts(earlier, parts) : { parts, removed: [] }
  const ofTurn = model.events.filter((event) => event.turn === turn && event.seq > 0)
  const usage = explanation.attempts.at(-1)?.usage
  const { change = {}, toolChoice, maxOutputTokens } = started
  const settings = { ...change.modelSettings, ...(maxOutputTokens !== undefined && { maxOutputTokens }) }
  return {
    turn,
    turns,
    agent: explanation.agent,
    model: explanation.model.modelId,
    parts: shareCached(compared, usage).map(cut),
    removed: removed.map(cut),
    leftOut: explanation.leftOut.map(({ role, seqs, tokens }: ReplacedMessage) => ({ role, seqs, tokens })),
    attempts: explanation.attempts.map((attempt) => ({
      attempt: attempt.attempt,
      seq: attempt.seq,
      model: attempt.model.modelId,
      outcome: attempt.outcome,
      ...describeEnd(ofTurn, attempt.attempt),
      ...(attempt.usage && { usage: attempt.usage }),
      ...(attempt.costUsd !== undefined && { costUsd: attempt.costUsd }),
      digest: checkDigest(model, attempt.seq),
    })),
    tokens: {
      ...explanation.tokens,
      ...(usage?.cacheReadTokens !== undefined && { cached: usage.cacheReadTokens }),
    },
    toolChoice: 'name' in toolChoice ? `${toolChoice.type} ${toolChoice.name}` : toolChoice.type,
    additions: (explanation.additions ?? []).map(({ field, option, replaces = false }) => ({
      ...{ field, option, replaces },
    })),
    overrides: Object.keys(change).filter((name) => name !== 'sourced'),
    ...(Object.keys(settings).length > 0 && { settings: JSON.stringify(settings) }),
  }
}

function explainTurn(model: RunModel, turn: number): Promise<Explanation> {
  const ofModel = known.get(model) ?? new Map<string, Promise<Explanation>>()
  known.set(model, ofModel)
  const last = model.events.findLast((event) => event.turn === turn)
  const key = `${turn} ${last?.seq ?? 0}`
  const found = ofModel.get(key)
  if (found) return found
  const made = explain(createReadLedger(model), model.events[0]!.runId, turn)
  ofModel.set(key, made)
  return made
}

/** A part whose text is whole. */
interface WholePart extends Omit<SawPart, 'text' | 'before'> {
  readonly text: string
  readonly before?: string
}

function cut({ text, before, ...part }: WholePart): SawPart {
  return {
    ...part,
    text: cutText(text, 20_000),
    ...(before !== undefined && { before: cutText(before, 20_000) }),
  }
}

async function listPartsOf(
  model: RunModel,
  starts: readonly EventOf<'model_call_started'>[],
  turn: number,
): Promise<readonly WholePart[]> {
  const started = starts.findLast((event) => event.turn === turn)!
  return listParts(model, await explainTurn(model, turn), started)
}

function listParts(
  model: RunModel,
  { items }: Explanation,
  started: EventOf<'model_call_started'>,
): readonly WholePart[] {
  const state = model.stateAt(started.seq)
  if (state?.phase !== 'streaming') return []
  const request = toModelRequest(state)
  const texts = {
    instructions: () => request.instructions,
    tools: () => formatTools(request.tools),
    output_schema: () => formatJson(request.outputSchema),
  }
  return items.map((item, place): WholePart => ({
    key: item.kind === 'message' ? `message ${item.index ?? place}` : item.kind,
    origin: findOrigin(model, item, started.seq),
    text: item.message ? formatMessage(item.message) : texts[item.kind as keyof typeof texts](),
    seqs: item.seqs,
    tokens: item.tokens,
    cached: 0,
    ...(item.costUsd !== undefined && { costUsd: item.costUsd }),
    ...(item.replaced && { replaced: item.replaced.length }),
  }))
}

function findOrigin(model: RunModel, { kind, message, seqs }: ExplainedItem, startedSeq: number): Origin {
  if (kind === 'output_schema') return 'schema'
  if (kind !== 'message') return kind
  const types = seqs.map((seq): EventType | undefined => model.events[seq - 1]?.type)
  if (types.includes('history_edited')) return 'edit'
  if (types.includes('context_compacted')) return 'summary'
  if (seqs.length === 1 && seqs[0] === startedSeq) return 'turn'
  if (message?.role === 'user') return 'user'
  return message?.role === 'assistant' ? 'reply' : 'results'
}

/** The parts that a request has in common with the one before, by the events that they came from, else by their words. */
function compareParts(
  earlier: readonly WholePart[],
  parts: readonly WholePart[],
): { readonly parts: readonly WholePart[]; readonly removed: readonly WholePart[] } {
  const left = new Set(earlier)
  const take = (fits: (part: WholePart) => boolean): WholePart | undefined => {
    const found = [...left].find(fits)
    if (found) left.delete(found)
    return found
  }
  const isFixed = ({ key }: WholePart): boolean => !key.startsWith('message')
  const seqsOf = ({ seqs }: WholePart): string => seqs.join()
  const found = new Map<WholePart, WholePart>()
  for (const part of parts) {
    const same = take((each) =>
      isFixed(part)
        ? each.key === part.key
        : !isFixed(each) && seqsOf(each) === seqsOf(part) && each.text === part.text,
    )
    if (same) found.set(part, same)
  }
  for (const part of parts) {
    const same = found.has(part) ? undefined : take((each) => !isFixed(each) && each.text === part.text)
    if (same) found.set(part, same)
  }
  for (const part of parts) {
    // What was changed keeps the events that it came from, with that of the change after them.
    const same = found.has(part)
      ? undefined
      : take((each) => !isFixed(each) && `${seqsOf(part)},`.startsWith(`${seqsOf(each)},`))
    if (same) found.set(part, same)
  }
  return {
    parts: parts.map((part): WholePart => {
      const was = found.get(part)
      if (was === undefined) return { ...part, change: 'added' }
      return was.text === part.text
        ? { ...part, change: 'same' }
        : { ...part, change: 'changed', before: was.text }
    }),
    removed: [...left],
  }
}

/** A cache holds the beginning of a request, so what was read from it fills the parts from the first on. */
export function shareCached(parts: readonly WholePart[], usage: Usage | undefined): readonly WholePart[] {
  const { inputTokens, cacheReadTokens = 0 } = usage ?? {}
  const estimated = parts.reduce((sum, { tokens }) => sum + tokens, 0)
  if (inputTokens === undefined || inputTokens === 0 || cacheReadTokens === 0) return parts
  let left = (estimated * Math.min(cacheReadTokens, inputTokens)) / inputTokens
  return parts.map((part) => {
    const cached = Math.min(part.tokens, left)
    left -= cached
    return { ...part, cached: Math.round(cached) }
  })
}

function describeEnd(
  ofTurn: readonly RuntimeEvent[],
  attempt: number,
): Pick<SawAttempt, 'failure' | 'retryAt' | 'durationMs'> {
  const started = ofTurn.find((event) => event.type === 'model_call_started' && event.attempt === attempt)
  const end = ofTurn.find(
    (event) =>
      (event.type === 'model_stream_failed' || event.type === 'assistant_message_finished') &&
      event.attempt === attempt,
  )
  return {
    ...(started && end && { durationMs: end.at - started.at }),
    ...(end?.type === 'model_stream_failed' && {
      failure: `${end.failure.class}: ${end.failure.message}`.slice(0, 2_000),
      ...(end.retryAt !== undefined && { retryAt: end.retryAt }),
    }),
  }
}

/** Computes the digest of the request anew, from the state before its event. */
function checkDigest(model: RunModel, seq: number): SawAttempt['digest'] {
  const event = model.events[seq - 1] as EventOf<'model_call_started'>
  const recorded = event.requestDigest
  const before = model.stateAt(seq - 1)
  if (before === undefined || before.removedFrom !== undefined || event.removed)
    return { recorded, is: 'gone' }
  const rebuilt = computeRequestDigest(before, event)
  return { recorded, rebuilt, is: rebuilt === recorded ? 'same' : 'other' }
}

/** A part of a reply, as far as it has come. */
export interface ReplyPiece {
  readonly kind: 'text' | 'reasoning' | 'call'
  readonly name?: string
  readonly toolCallId?: string
  readonly text: CutText
  /** The text that the model wrote, where the agent's `outputStream` shows another one. */
  readonly written?: CutText
}

/** The reply of a turn as it was at an event. */
export interface ReplyAt {
  readonly attempt: number
  readonly pieces: readonly ReplyPiece[]
  readonly isStreaming: boolean
  readonly stopReason?: string
  readonly isPartial?: boolean
  /** Milliseconds from the request to the first delta, and from there to the end or to this event. */
  readonly firstMs?: number
  readonly streamMs?: number
  readonly deltas: number
  /** Events of its beginning and its end. */
  readonly fromSeq: number
  readonly toSeq: number
}

interface Growing {
  readonly kind: ReplyPiece['kind']
  readonly name?: string
  readonly toolCallId?: string
  text: string
  written: string
}

/** Returns the reply of a turn at an event; the whole one at events after the turn. */
export function describeReply(model: RunModel, turn: number, seq: number): ReplyAt | undefined {
  const ofTurn = model.events.filter((event) => event.turn === turn && event.seq <= seq)
  const started = ofTurn.findLast((event) => event.type === 'model_call_started')
  if (started?.type !== 'model_call_started') return undefined
  const pieces = new Map<number, Growing>()
  let [first, last, deltas] = [undefined as RuntimeEvent | undefined, started as RuntimeEvent, 0]
  let end: EventOf<'assistant_message_finished'> | undefined
  let hasFailed = false
  for (const event of ofTurn) {
    if (event.seq <= started.seq || !('attempt' in event) || event.attempt !== started.attempt) continue
    if (event.type === 'assistant_message_finished') end = event
    if (event.type === 'model_stream_failed') hasFailed = true
    if (!addPiece(pieces, event)) continue
    deltas++
    first ??= event
    last = event
  }
  const finished = end ?? last
  return {
    attempt: started.attempt,
    pieces: [...pieces].sort(([a], [b]) => a - b).map(([, piece]) => toPiece(piece)),
    isStreaming: end === undefined && !hasFailed && model.stateAt(seq)?.turn === turn,
    deltas,
    ...(end && { stopReason: end.stopReason, isPartial: end.partial }),
    ...(first && { firstMs: first.at - started.at, streamMs: finished.at - first.at }),
    fromSeq: started.seq,
    toSeq: finished.seq,
  }
}

function toPiece({ kind, name, toolCallId, text, written }: Growing): ReplyPiece {
  return {
    kind,
    text: cutText(text, 20_000),
    ...(name !== undefined && { name }),
    ...(toolCallId !== undefined && { toolCallId }),
    ...(written !== text && kind !== 'call' && { written: cutText(written, 20_000) }),
  }
}

/** Adds what an event says to the reply; false for events that say nothing of it. */
function addPiece(pieces: Map<number, Growing>, event: RuntimeEvent): boolean {
  if (event.type === 'tool_request_ready') {
    const { part, name, toolCallId, input, malformed } = event
    pieces.set(part, {
      kind: 'call',
      name,
      toolCallId,
      text: malformed?.text ?? formatJson(input),
      written: '',
    })
    return true
  }
  if (event.type === 'tool_input_delta') {
    const { part, name, toolCallId, text } = event
    const piece = pieces.get(part) ?? { kind: 'call', name, toolCallId, text: '', written: '' }
    piece.text += text
    pieces.set(part, piece)
    return true
  }
  if (event.type !== 'assistant_text_delta' && event.type !== 'assistant_reasoning_delta') return false
  const { part, text, written = text, replaces } = event
  const kind = event.type === 'assistant_text_delta' ? 'text' : 'reasoning'
  const piece = pieces.get(part) ?? { kind, text: '', written: '' }
  piece.text = replaces ? text : piece.text + text
  piece.written = replaces ? written : piece.written + written
  pieces.set(part, piece)
  return true
}
