import { createReadStream } from 'node:fs'
import {
  ConfigurationError,
  type Feedback,
  joinText,
  type Ledger,
  type Message,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  formatError,
  formatErrorSentence,
  omitUndefined,
  option,
  requireLedger,
  requireOptions,
  type Schema,
} from '@tallystick/core/internal'
import { evolve, type RunState, toTranscript } from '@tallystick/core/machine'
import {
  type EventOf,
  type Json,
  type JsonObject,
  type Outcome,
  outcomes,
  type ResultPart,
  type UserPart,
} from '@tallystick/core/vocabulary'
import { readRunSummaries, splitLines, type SummaryFilter } from '@tallystick/ledger'
import { maskSecrets } from '@tallystick/replay'

/** A call of a recorded run, and its result. */
export interface CaseCall {
  readonly tool: string
  /** As the model asked. */
  readonly input: JsonObject
  /** As the tool got it, where a person, a guardrail or a repair changed it. */
  readonly ran?: JsonObject | undefined
  readonly outcome: Outcome
  readonly content: string | readonly ResultPart[]
  /** A child run made it: its result is served, and it is not part of the run's own sequence of calls. */
  readonly child?: true | undefined
}

/** What an agent is asked, what its tools answered, and what it should say. In a file one line of JSON. */
export interface EvalCase {
  /** Unique among the cases; the id of the run that it was made of. */
  readonly id: string
  readonly input: string | readonly UserPart[]
  /** The messages before the input. */
  readonly history?: readonly Message[] | undefined
  /** The calls that the recorded run made from there on, in order. Absent where nothing was recorded: then no call is another one than before. */
  readonly calls?: readonly CaseCall[] | undefined
  /** What scorers compare with: the text of the answer, or the output of the agent as JSON. */
  readonly expected?: Json | undefined
  /** The agent of the recorded run, how that ended, and what was said of it. */
  readonly agent?: string | undefined
  readonly reason?: string | undefined
  readonly feedback?: readonly Feedback[] | undefined
  readonly tags?: readonly string[] | undefined
  /** For scorers of your own. */
  readonly metadata?: JsonObject | undefined
}

const { anyObject, anyText, fields, filledText, listOf, maybe, oneOf, valueThat } = option
const textOrParts = valueThat(
  'a text or a list of parts',
  (value) => typeof value === 'string' || Array.isArray(value),
)

/** Checks a case. Its messages and parts are checked by the run that gets them. */
export const someCase: Schema = fields<EvalCase>(
  {
    id: filledText,
    input: textOrParts,
    history: maybe(listOf(anyObject)),
    calls: maybe(
      listOf(
        fields<CaseCall>({
          tool: filledText,
          input: anyObject,
          ran: maybe(anyObject),
          outcome: oneOf(outcomes),
          content: textOrParts,
          child: maybe(valueThat('true', (value) => value === true)),
        }),
      ),
    ),
    expected: maybe(() => undefined),
    agent: maybe(anyText),
    reason: maybe(anyText),
    feedback: maybe(listOf(anyObject)),
    tags: maybe(listOf(anyText)),
    metadata: maybe(anyObject),
  },
  { output: 'expected', ideal: 'expected', messages: 'history' },
)

/** Options of `collectCases`. */
export interface CollectOptions {
  /** Chooses the runs, as for `readRunSummaries`. */
  readonly where?: Omit<SummaryFilter, 'before'> | undefined
  /** These runs, in this order, in place of those that `where` chooses. */
  readonly runs?: Iterable<RunId> | AsyncIterable<RunId> | undefined
  /** Patterns of further secrets to mask. If a pattern has a group, the match of the group is masked. */
  readonly secrets?: readonly RegExp[] | undefined
  /** Called for each run that makes no case, with the reason. */
  readonly onSkipped?: ((runId: RunId, reason: string) => void) | undefined
}

const collectOptions = fields<CollectOptions>({
  where: maybe(anyObject),
  runs: maybe(
    valueThat(
      'ids of runs',
      (value) =>
        typeof value === 'object' &&
        value !== null &&
        (Symbol.iterator in value || Symbol.asyncIterator in value),
    ),
  ),
  secrets: maybe(listOf(valueThat('a RegExp', (value) => value instanceof RegExp))),
  onSkipped: maybe(option.anyFunction),
})

/**
 * Makes cases of the runs of a ledger, the newest first: what a person said last in each, the messages before it, the
 * results of the tools from there on, and the answer as what is expected. So a run that was steered is evaluated from its
 * last steering on, with all that led to it. What looks like a secret is masked. Child runs are part of their root run;
 * runs that have not ended, or of which content was removed, make no case.
 */
export async function* collectCases(ledger: Ledger, options: CollectOptions = {}): AsyncGenerator<EvalCase> {
  requireLedger('collectCases', ledger)
  requireOptions('collectCases', collectOptions, options)
  const { where = {}, runs, secrets, onSkipped = () => {} } = options
  for await (const runId of runs ?? findRuns(ledger, where)) {
    try {
      const made = await makeCase(ledger, runId)
      if (typeof made === 'string') onSkipped(runId, made)
      else yield { ...maskSecrets(made, secrets), id: runId }
    } catch (error) {
      onSkipped(runId, formatError(error))
    }
  }
}

/** The runs that a filter chooses. Child runs are parts of their root run. */
async function* findRuns(ledger: Ledger, where: SummaryFilter): AsyncGenerator<RunId> {
  for await (const run of readRunSummaries(ledger, where))
    if (!('parent' in run) || run.parent?.relation !== 'child') yield run.runId
}

/** The case of one run, or why it makes none. */
async function makeCase(ledger: Ledger, runId: RunId): Promise<EvalCase | string> {
  let before: RunState | undefined
  let state: RunState | undefined
  let input: EventOf<'input_received'> | undefined
  let from = 0
  const received = new Map<string, EventOf<'input_received'>>()
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) {
    if (event.removed !== undefined) return 'content of it was removed'
    if (event.type === 'input_received' && event.receipt !== undefined) received.set(event.receipt, event)
    const entered =
      event.type === 'input_received' && event.delivery === 'start'
        ? event
        : event.type === 'input_settled' && event.delivered
          ? received.get(event.receipt)
          : undefined
    if (entered) {
      input = entered
      before = state
      from = events.length
    }
    state = evolve(state, event)
    events.push(event)
  }
  if (state?.parent?.relation === 'child')
    return 'it is a child run, whose calls are part of the case of its root run'
  if (state?.phase !== 'done') return 'it has not ended'
  if (input === undefined) return 'it has no input'
  if (state.schedule) return 'it is a schedule, which calls no model'
  const calls = await collectCalls(ledger, events.slice(from), false)
  if (calls === undefined) return 'content of a child run was removed'
  const history = before ? toTranscript(before) : []
  const feedback = events.flatMap((event): Feedback[] =>
    event.type === 'feedback_given'
      ? [{ by: event.by, ...omitUndefined({ score: event.score, note: event.note }) }]
      : [],
  )
  const expected = state.output
    ? state.output.value
    : state.reason === 'answered'
      ? state.lastText
      : undefined
  return {
    id: runId,
    input: toShort(input.message.parts),
    ...(history.length > 0 && { history }),
    calls,
    ...(expected !== undefined && { expected }),
    agent: state.agent,
    reason: state.reason,
    ...(feedback.length > 0 && { feedback }),
    ...omitUndefined({ tags: state.labels?.tags }),
  }
}

/** The calls of a run with a result, those of its child runs behind them; `undefined` if content of a child run is gone. */
async function collectCalls(
  ledger: Ledger,
  events: readonly RuntimeEvent[],
  isChild: boolean,
): Promise<readonly CaseCall[] | undefined> {
  const asked = new Map<string, JsonObject>()
  const children = new Set<RunId>()
  // In the order of the requests: results of reads come as they end.
  const open = new Map<
    string,
    Pick<CaseCall, 'tool' | 'input' | 'ran'> & { result?: EventOf<'tool_result'> }
  >()
  for (const event of events) {
    if (event.type === 'tool_request_ready') asked.set(event.toolCallId, event.input)
    if (event.type === 'tool_requests_collected') {
      for (const { toolCallId, name: tool, input: ran } of event.calls)
        open.set(toolCallId, { tool, input: asked.get(toolCallId) ?? {}, ...omitUndefined({ ran }) })
    }
    const call = event.toolCallId === undefined ? undefined : open.get(event.toolCallId)
    if (event.type === 'tool_started' && event.child !== undefined) children.add(event.child)
    if (event.type === 'approval_decided' && event.input && call)
      open.set(event.toolCallId, { ...call, ran: event.input })
    if (event.type === 'tool_result' && call) call.result = event
  }
  const calls = [...open.values()].flatMap(({ result, ...call }): CaseCall[] => {
    if (result === undefined) return []
    const { outcome, projected, content } = result
    return [{ ...call, outcome, content: toShort(projected ?? content), ...(isChild && { child: true }) }]
  })
  for (const child of children) {
    const own: RuntimeEvent[] = []
    for await (const event of ledger.read(child)) {
      if (event.removed !== undefined) return undefined
      own.push(event)
    }
    const more = await collectCalls(ledger, own, true)
    if (more === undefined) return undefined
    calls.push(...more)
  }
  return calls
}

/** A single text as a text. */
function toShort<Part extends { readonly type: string }>(parts: readonly Part[]): string | readonly Part[] {
  return parts.length === 1 && parts[0]?.type === 'text' && Object.keys(parts[0]).length === 2
    ? joinText(parts)
    : parts
}

const decoder = new TextDecoder()

/**
 * Reads cases from a file of JSON Lines, one at a time, and skips empty lines. Rejects with a `ConfigurationError` that names the
 * line which holds no case.
 */
export async function* readCases(path: string): AsyncGenerator<EvalCase> {
  requireOptions('readCases', filledText, path, 'the path')
  let line = 0
  for await (const bytes of splitLines(openFile(path))) {
    line++
    const text = decoder.decode(bytes)
    if (text.trim() === '') continue
    const subject = `Line ${line} of ${path}`
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (cause) {
      throw new ConfigurationError(
        `${subject} is not JSON: ${formatErrorSentence(cause)} Write one case a line, as tallystick dataset does.`,
        { cause },
      )
    }
    requireOptions(subject, someCase, value, 'the case')
    yield value as EvalCase
  }
}

/** The bytes of a file, which is opened when the first are asked for. */
async function* openFile(path: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const bytes of createReadStream(path)) yield bytes as Uint8Array
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause)
    throw new ConfigurationError(`The cases of ${path} cannot be read (${code}). Check the path.`, { cause })
  }
}
