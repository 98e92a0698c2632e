import { type Ledger, type RunId, type RuntimeEvent, textOf } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import {
  canonicalJson,
  type EventOf,
  type EventType,
  type Json,
  type JsonObject,
  type Outcome,
  outcomes,
} from '@tallystick/core/vocabulary'
import { type Command, InvalidArgumentError, Option } from 'commander'
import {
  filledText,
  type GivenMoment,
  moment,
  momentAt,
  onLedger,
  wholeNumber,
} from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { contentText, oneLine, timeText } from '../command/text.ts'
import { findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { textWidth } from '../terminal/text-width.ts'
import type { Done } from '../verbs.ts'

/** A value that the input of a call is to hold: at a path, or anywhere. */
interface InputQuery {
  /** Names of fields and numbers of items, from the outside in. */
  readonly path: readonly string[]
  readonly value: string
}

/** What is asked of a call. All of it has to be true. */
export interface CallQuery {
  readonly tool?: string
  readonly outcome?: Outcome
  readonly inputs: readonly InputQuery[]
}

/** Appends a query such as `order.id=17` or `items.0.sku=tea` to the earlier ones. */
function inputQuery(text: string, before: readonly InputQuery[] = []): readonly InputQuery[] {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It has to be a path and a value, such as order.id=17.')
  return [...before, { path: text.slice(0, at).split('.'), value: text.slice(at + 1) }]
}

/** Whether an input holds a value at a path: a text as it is, anything else as JSON writes it. */
function holds(input: JsonObject, { path, value }: InputQuery): boolean {
  let at: Json | undefined = input
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return false
    at = (at as { readonly [field: string]: Json })[name]
  }
  return at === value || (at !== undefined && typeof at !== 'string' && JSON.stringify(at) === value)
}

/** What to find in a ledger. All filters must match. */
export interface EventFinder {
  readonly call: CallQuery
  /** Part of what was said, in letters of either case. */
  readonly text?: string
  readonly runId?: RunId
  readonly sessionId?: string
  /** Milliseconds since 1970 UTC, both ends included. */
  readonly fromAt?: number
  readonly toAt?: number
}

/** A call, or anything else that was said, with the event that it is found at. */
export interface Found {
  readonly runId: RunId
  readonly seq: number
  readonly turn: number
  readonly at: number
  readonly type: EventType
  /** What was said. */
  readonly text: string
  readonly toolCallId?: string
  readonly tool?: string
  /** As the model asked for it, or as it ran where that is another one. */
  readonly input?: JsonObject
  /** Absent of a call that has not ended. */
  readonly outcome?: Outcome
}

const callTypes = [
  'tool_request_ready',
  'tool_requests_collected',
  'approval_decided',
  'tool_result',
] as const
/**
 * Finds calls and what was said, in all runs, in the order in which it was recorded. A call is found at its result; those
 * that have not ended come last.
 */
export async function* foundEvents(ledger: Ledger, finder: EventFinder): AsyncGenerator<Found> {
  const { call, text, ...where } = finder
  const isOfCalls = call.tool !== undefined || call.outcome !== undefined || call.inputs.length > 0
  const types = [...callTypes, ...(isOfCalls ? [] : textTypes())]
  const calls = new OpenCalls(call)
  const matches = (part: string): boolean =>
    text === undefined || part.toLowerCase().includes(text.toLowerCase())
  for await (const event of ledger.find({ ...where, types })) {
    const result = calls.handle(event)
    const found = result ?? (isOfCalls ? undefined : foundText(event))
    if (found && matches(searchedText(found))) yield found
  }
  if (call.outcome !== undefined) return
  for (const found of calls.open()) if (matches(searchedText(found))) yield found
}

function textTypes(): readonly EventType[] {
  return Object.keys(texts) as EventType[]
}

function searchedText({ text, input, tool = '' }: Found): string {
  return `${tool} ${input === undefined ? '' : canonicalJson(input)} ${text}`
}

/** The calls that were asked for and have no result yet. */
class OpenCalls {
  readonly #query: CallQuery
  readonly #calls = new Map<string, { readonly request: EventOf<'tool_request_ready'>; input: JsonObject }>()

  constructor(query: CallQuery) {
    this.#query = query
  }

  /** The call that ends with an event, where it is one that is looked for. */
  handle(event: RuntimeEvent): Found | undefined {
    if (event.type === 'tool_request_ready' && event.removed === undefined) {
      this.#calls.set(event.toolCallId, { request: event, input: event.input })
    }
    if (event.type === 'tool_requests_collected') {
      for (const { toolCallId, input } of event.calls ?? []) this.#change(toolCallId, input)
    }
    if (event.type === 'approval_decided') this.#change(event.toolCallId, event.input)
    return event.type === 'tool_result' ? this.#result(event) : undefined
  }

  #result(event: EventOf<'tool_result'>): Found | undefined {
    const call = this.#calls.get(event.toolCallId)
    this.#calls.delete(event.toolCallId)
    const { input = {}, request } = call ?? {}
    if (!this.#isAsked(event.name, [input, request?.input ?? input], event.outcome)) return undefined
    const { runId, seq, turn, at, type, toolCallId, name: tool, outcome, content } = event
    return { runId, seq, turn, at, type, toolCallId, tool, input, outcome, text: contentText(content ?? []) }
  }

  *open(): Generator<Found> {
    for (const { request, input } of this.#calls.values()) {
      if (!this.#isAsked(request.name, [input, request.input], undefined)) continue
      const { runId, seq, turn, at, type, toolCallId, name: tool } = request
      yield { runId, seq, turn, at, type, toolCallId, tool, input, text: '' }
    }
  }

  #change(toolCallId: string, input: JsonObject | undefined): void {
    const call = this.#calls.get(toolCallId)
    if (call && input !== undefined) call.input = input
  }

  #isAsked(name: string, inputs: readonly JsonObject[], result: Outcome | undefined): boolean {
    const { tool, outcome, inputs: asked } = this.#query
    if (tool !== undefined && name !== tool) return false
    if (outcome !== undefined && result !== outcome) return false
    return asked.every((query) => inputs.some((input) => holds(input, query)))
  }
}

/** What an event says in words; `undefined` where it says nothing. */
function foundText(event: RuntimeEvent): Found | undefined {
  const text = eventText(event)
  if (text === undefined || text === '') return undefined
  const { runId, seq, turn, at, type } = event
  return { runId, seq, turn, at, type, text }
}

function eventText(event: RuntimeEvent): string | undefined {
  if (event.removed !== undefined) return undefined
  const text = texts[event.type] as ((event: RuntimeEvent) => string | undefined) | undefined
  return text?.(event)
}

/** What is said in events of some types. */
const texts: { readonly [T in EventType]?: (event: EventOf<T>) => string | undefined } = {
  input_received: ({ message }) => contentText(message.parts),
  assistant_message_finished: ({ parts }) => textOf(parts),
  model_stream_failed: ({ failure }) => failure.message,
  guardrail_tripped: ({ guardrail, detail = '' }) => `${guardrail} ${detail}`.trim(),
  context_compacted: ({ summary }) => contentText(summary.parts),
  cancel_requested: ({ reason }) => reason,
  run_finished: ({ reason, detail = '' }) => `${reason} ${detail}`.trim(),
}

/** What `find` was given. */
export interface FindOptions {
  readonly ledger: string
  readonly tool?: string
  readonly outcome?: Outcome
  readonly input?: readonly InputQuery[]
  readonly text?: string
  readonly run?: string
  readonly session?: string
  readonly since?: GivenMoment
  readonly until?: GivenMoment
  readonly limit?: number
}

const maxTextColumns = 200
/** So many characters are shown before the text that was found. */
const charactersBefore = 30

/** Declares what `find` takes. */
export function declareFind(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'find calls and messages in all runs: by tool, input, outcome, text and time')
    .option('--tool <name>', 'calls of this tool')
    .option('--input <path=value>', 'calls with this in their input; may be repeated', inputQuery)
    .addOption(new Option('--outcome <outcome>', 'calls that ended so').choices(outcomes))
    .option('--text <text>', 'messages and calls with this text, in upper or lower case', filledText)
    .option('--run <run>', 'in this run only')
    .option('--session <id>', 'in the runs of this session only')
    .option('--since <when>', 'from then on: 12h, 3d, 2026-06-30', moment)
    .option('--until <when>', 'up to then', moment)
    .option('--limit <n>', 'at most this many', wholeNumber)
    .action(async (ledger: string, options: Omit<FindOptions, 'ledger'>) => {
      done(await find(context, { ledger, ...options }))
    })
}

/**
 * `find`: a line for each call, and for anything else that was said, in all runs. Calls are found by tool, input and
 * outcome; with these alone nothing else is.
 */
export function find(context: CommandContext, options: FindOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, limit = Infinity } = options
  const { json, print, say, programName } = context
  requireQuestion(options)
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = run === undefined ? undefined : await findRun(ledger, run, { programName, ledgerPath })
    const finder = finderOf(options, context.now())
    let count = 0
    let last: Found | undefined
    for await (const found of foundEvents(ledger, { ...finder, ...omitUndefined({ runId }) })) {
      count++
      last = found
      await print(json ? `${JSON.stringify(found)}\n` : `${lineOf(found, options, context.columns)}\n`)
      if (count >= limit) break
    }
    if (!json && last === undefined) say('Nothing of the kind is on record.')
    if (context.isRead && last !== undefined) {
      say(
        `See one whole: ${commandLine(programName, 'show', ledgerPath, last.runId, '--event', `${last.seq}`)}`,
      )
    }
    return exitCodes.ok
  })
}

function requireQuestion({ tool, outcome, input = [], text, run, session, since, until }: FindOptions): void {
  if ((tool ?? outcome ?? text ?? run ?? session ?? since ?? until) !== undefined || input.length > 0) return
  throw new CommandError(
    'usage',
    'Say what to look for: --tool NAME, --input PATH=VALUE, --outcome OUTCOME, --text TEXT, --since WHEN, --until WHEN.',
  )
}

function finderOf(
  { tool, outcome, input = [], text, session, since, until }: FindOptions,
  now: number,
): EventFinder {
  const [fromAt, toAt] = [since && momentAt(since, now), until && momentAt(until, now)]
  if (fromAt !== undefined && toAt !== undefined && fromAt > toAt) {
    throw new CommandError('usage', '--until is before --since, so nothing could be found. Swap them.')
  }
  return {
    call: { inputs: input, ...omitUndefined({ tool, outcome }) },
    ...omitUndefined({ text, sessionId: session, fromAt, toAt }),
  }
}

/** Where it is found, and what it says around what was looked for. */
function lineOf(found: Found, { text }: FindOptions, columns: number | undefined): string {
  const { runId, seq, at, type, tool, outcome, input } = found
  const run = columns === undefined ? runId : runId.slice(-8)
  const time = columns === undefined ? timeText(at) : timeText(at).slice(5, 16).replace('T', ' ')
  const what =
    tool === undefined ? [type] : [tool, outcome ?? 'open', ...(input ? [canonicalJson(input)] : [])]
  const head = [run, `${seq}`.padStart(4), time].join('  ')
  const room = columns === undefined ? maxTextColumns : columns - textWidth(head) - 2
  return `${head}  ${oneLine([...what, around(found.text, text)].join(' '), Math.max(1, room))}`
}

function around(passage: string, text: string | undefined): string {
  const place = text === undefined ? -1 : passage.toLowerCase().indexOf(text.toLowerCase())
  return place > charactersBefore ? `…${passage.slice(place - charactersBefore)}` : passage
}
