import { type Ledger, type RunId, type RuntimeEvent, joinText } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import {
  toCanonicalJson,
  type EventOf,
  type EventType,
  eventTypes,
  type Json,
  type JsonObject,
  type Outcome,
  outcomes,
} from '@tallystick/core/vocabulary'
import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { parseFilled, parseMoment, toTime, declareLedger, parseWholeNumber } from '../command/arguments.ts'
import { type CommandContext, formatCommand, printEither } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import { formatContent, toOneLine, formatTime } from '../command/text.ts'
import { findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { measureText } from '../terminal/text-width.ts'

/** A value in the input of a call. */
interface InputQuery {
  /** Names of fields and numbers of items, from the outside in. */
  readonly path: readonly string[]
  readonly value: string
}

/** Conditions on a call. All must hold. */
export interface CallQuery {
  readonly tool?: string
  readonly outcome?: Outcome
  readonly inputs: readonly InputQuery[]
}

/** Appends a query such as `order.id=17` or `items.0.sku=tea` to the earlier ones. */
function parseInputQuery(text: string, before: readonly InputQuery[] = []): readonly InputQuery[] {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It has to be a path and a value, such as order.id=17.')
  return [...before, { path: text.slice(0, at).split('.'), value: text.slice(at + 1) }]
}

/** Compares texts as they are, and other values as JSON. */
function holds(input: JsonObject, { path, value }: InputQuery): boolean {
  let at: Json | undefined = input
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return false
    at = (at as { readonly [field: string]: Json })[name]
  }
  return at === value || (at !== undefined && typeof at !== 'string' && JSON.stringify(at) === value)
}

/** Conditions on what is found. All must hold. */
export interface EventFinder {
  readonly call: CallQuery
  /** Part of the text, in either case. */
  readonly text?: string
  readonly runId?: RunId
  readonly sessionId?: string
  /** Milliseconds since 1970 UTC, both ends included. */
  readonly fromAt?: number
  readonly toAt?: number
}

/** A call, or another event with text. A call is found at its result. */
export interface Found {
  readonly runId: RunId
  readonly seq: number
  readonly turn: number
  readonly at: number
  readonly type: EventType
  readonly text: string
  readonly toolCallId?: string
  readonly tool?: string
  /** As it ran, or as the model asked for it if it did not run. */
  readonly input?: JsonObject
  /** Absent if the call has not ended. */
  readonly outcome?: Outcome
}

const callTypes = [
  'tool_request_ready',
  'tool_requests_collected',
  'approval_decided',
  'tool_result',
] as const

/** Finds calls and messages in the order in which they were recorded; calls that have not ended come last. */
export async function* findEvents(
  ledger: Ledger,
  { call: { tool, outcome, inputs: queries }, text, ...where }: EventFinder,
): AsyncGenerator<Found> {
  const isOfCalls = tool !== undefined || outcome !== undefined || queries.length > 0
  const types = [...callTypes, ...(isOfCalls ? [] : textTypes)]
  /** The calls that were asked for and have no result yet. */
  const open = new Map<string, { readonly request: EventOf<'tool_request_ready'>; input: JsonObject }>()
  const change = (toolCallId: string, input: JsonObject | undefined): void => {
    const call = open.get(toolCallId)
    if (call && input !== undefined) call.input = input
  }
  const fits = (found: Found, inputs: readonly JsonObject[] = []): boolean => {
    if (tool !== undefined && found.tool !== tool) return false
    if (outcome !== undefined && found.outcome !== outcome) return false
    if (!queries.every((query) => inputs.some((input) => holds(input, query)))) return false
    const input = found.input === undefined ? '' : toCanonicalJson(found.input)
    const searched = `${found.tool ?? ''} ${input} ${found.text}`
    return text === undefined || searched.toLowerCase().includes(text.toLowerCase())
  }
  for await (const event of ledger.find({ ...where, types })) {
    const { runId, seq, turn, at, type } = event
    if (event.type === 'tool_request_ready' && event.removed === undefined) {
      open.set(event.toolCallId, { request: event, input: event.input })
    }
    if (event.type === 'tool_requests_collected') {
      for (const { toolCallId, input } of event.calls ?? []) change(toolCallId, input)
    }
    if (event.type === 'approval_decided') change(event.toolCallId, event.input)
    if (event.type === 'tool_result') {
      const { toolCallId, name, content } = event
      const { input = {}, request } = open.get(toolCallId) ?? {}
      open.delete(toolCallId)
      const ended = {
        toolCallId,
        tool: name,
        input,
        outcome: event.outcome,
        text: formatContent(content ?? []),
      }
      const found: Found = { runId, seq, turn, at, type, ...ended }
      if (fits(found, [input, request?.input ?? input])) yield found
    } else if (!isOfCalls) {
      const found: Found = { runId, seq, turn, at, type, text: readText(event) }
      if (found.text !== '' && fits(found)) yield found
    }
  }
  for (const { request, input } of open.values()) {
    const { runId, seq, turn, at, type, toolCallId, name } = request
    const found: Found = { runId, seq, turn, at, type, toolCallId, tool: name, input, text: '' }
    if (fits(found, [input, request.input])) yield found
  }
}

/** Reads the text of an event; empty if it has none. */
function readText(event: RuntimeEvent): string {
  const read = texts[event.type] as ((event: RuntimeEvent) => string | undefined) | null
  return (event.removed === undefined ? read?.(event) : undefined) ?? ''
}

/** The text of each type of event that a search looks into; the text of calls is found at their results. */
const texts: { readonly [T in EventType]: ((event: EventOf<T>) => string | undefined) | null } = {
  run_started: null,
  run_resumed: null,
  history_carried: null,
  history_edited: null,
  input_received: ({ message }) => formatContent(message.parts),
  input_settled: null,
  model_call_started: null,
  assistant_started: null,
  assistant_text_delta: null,
  assistant_reasoning_delta: null,
  tool_input_delta: null,
  tool_request_ready: null,
  usage_updated: null,
  assistant_message_finished: ({ parts }) => joinText(parts),
  model_stream_failed: ({ failure }) => failure.message,
  tool_requests_collected: null,
  approval_requested: null,
  approval_decided: null,
  tool_started: null,
  tool_progress: null,
  tool_deferred: null,
  tool_attempt_failed: null,
  tool_result: null,
  tool_results_injected: null,
  compaction_started: null,
  context_compacted: ({ summary }) => formatContent(summary.parts),
  agent_handed_off: null,
  guardrail_tripped: ({ guardrail, detail = '' }) => `${guardrail} ${detail}`.trim(),
  guardrails_checked: null,
  output_checked: null,
  limit_reached: null,
  limit_raised: null,
  cancel_requested: ({ reason }) => reason,
  run_finished: ({ reason, detail = '' }) => `${reason} ${detail}`.trim(),
}
const textTypes = eventTypes.filter((type) => texts[type] !== null)

const maxTextColumns = 200
/** At most this many characters are shown before the text that was found. */
const charactersBefore = 30

/** Declares `find`. With a tool, an input or an outcome it finds calls only. */
export function declareFind(verb: Command, context: CommandContext): void {
  declareLedger(verb, 'find calls and messages in all runs: by tool, input, outcome, text and time')
    .option('--tool <name>', 'calls of this tool')
    .option('--input <path=value>', 'calls with this in their input; may be repeated', parseInputQuery)
    .addOption(new Option('--outcome <outcome>', 'calls with this outcome').choices(outcomes))
    .option('--text <text>', 'messages and calls with this text, in upper or lower case', parseFilled)
    .option('--run <run>', 'in this run only')
    .option('--session <id>', 'in the runs of this session only')
    .option('--since <when>', 'from then on: 12h, 3d, 2026-06-30', parseMoment)
    .option('--until <when>', 'up to then', parseMoment)
    .option('--limit <n>', 'at most this many', parseWholeNumber)
    .action(async (ledgerPath, { tool, outcome, input: inputs = [], text, run, ...options }) => {
      const { session, since, until, limit = Infinity } = options
      const { json, say, programName } = context
      if (
        (tool ?? outcome ?? text ?? run ?? session ?? since ?? until) === undefined &&
        inputs.length === 0
      ) {
        throw new CommandError(
          'usage',
          'Say what to look for: --tool NAME, --input PATH=VALUE, --outcome OUTCOME, --text TEXT, --since WHEN, --until WHEN.',
        )
      }
      const now = context.now()
      const [fromAt, toAt] = [since && toTime(since, now), until && toTime(until, now)]
      if (fromAt !== undefined && toAt !== undefined && fromAt > toAt) {
        throw new CommandError('usage', '--until is before --since, so nothing could be found. Swap them.')
      }
      await withLedger(ledgerPath, 'read', async (ledger) => {
        const runId = run === undefined ? undefined : await findRun(ledger, run, { programName, ledgerPath })
        const finder: EventFinder = {
          call: { inputs, ...omitUndefined({ tool, outcome }) },
          ...omitUndefined({ text, runId, sessionId: session, fromAt, toAt }),
        }
        let count = 0
        let last: Found | undefined
        for await (const found of findEvents(ledger, finder)) {
          count++
          last = found
          await printEither(context, found, `${formatLine(found, text, context.columns)}\n`)
          if (count >= limit) break
        }
        if (!json && last === undefined) say('Nothing of the kind is on record.')
        if (context.isRead && last !== undefined) {
          const show = formatCommand(programName, 'show', ledgerPath, last.runId, '--event', `${last.seq}`)
          say(`See one whole: ${show}`)
        }
      })
    })
}

function formatLine(found: Found, text: string | undefined, columns: number | undefined): string {
  const { runId, seq, at, type, tool, outcome, input } = found
  const run = columns === undefined ? runId : runId.slice(-8)
  const time = columns === undefined ? formatTime(at) : formatTime(at).slice(5, 16).replace('T', ' ')
  const what =
    tool === undefined ? [type] : [tool, outcome ?? 'open', ...(input ? [toCanonicalJson(input)] : [])]
  const head = [run, `${seq}`.padStart(4), time].join('  ')
  const room = columns === undefined ? maxTextColumns : columns - measureText(head) - 2
  const place = text === undefined ? -1 : found.text.toLowerCase().indexOf(text.toLowerCase())
  const passage = place > charactersBefore ? `…${found.text.slice(place - charactersBefore)}` : found.text
  return `${head}  ${toOneLine([...what, passage].join(' '), Math.max(1, room))}`
}
