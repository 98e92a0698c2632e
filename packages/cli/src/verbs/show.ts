import type { Ledger, Message, RunId, RunState, RuntimeEvent } from '@tallystick/core'
import { isRunDriven, omitUndefined, toRunTimes } from '@tallystick/core/internal'
import { transcript } from '@tallystick/core/machine'
import { type EventOf, eventTypes } from '@tallystick/core/vocabulary'
import { foldTo, rebuiltRequest } from '@tallystick/ledger'
import { type Command, Option } from 'commander'
import { onLedger, wholeNumber } from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { durationText, prettyJson, timeText } from '../command/text.ts'
import { withRun } from '../runs/find-run.ts'
import { eventsOf, readRun, waitedTime } from '../runs/read-run.ts'
import { ownWaits, runStatusView, type RunStatusView, waitsOf } from '../runs/run-status.ts'
import { type RunStory, StoryBuilder, storyTypes } from '../runs/run-story.ts'
import type { Paint } from '../terminal/paint.ts'
import type { Done } from '../verbs.ts'
import { eventText, isOfInterest } from '../view/events.ts'
import { additionText, type ChildRun, factsText, type ShownRun, tallyIn } from '../view/run-facts.ts'
import { openCallsOf, storyText } from '../view/story-text.ts'

const maxHeadCharacters = 120

/** `show --event`: one event whole, over lines under a line that says what it is; with `--json` on one line. */
async function showEvent(
  { json, paint, print }: CommandContext,
  ledger: Ledger,
  { runId, seq }: { readonly runId: RunId; readonly seq: number },
): Promise<void> {
  for await (const event of ledger.read(runId, { fromSeq: seq, toSeq: seq })) {
    if (json) await print(`${JSON.stringify(event)}\n`)
    else await print(`${paint('bold', headOf(event))}\n${prettyJson(JSON.parse(JSON.stringify(event)))}\n`)
  }
}

function headOf(event: RuntimeEvent): string {
  return `event ${event.seq}, ${timeText(event.at)}: ${eventText(event, maxHeadCharacters)}`
}

const maxEventCharacters = 120

/** `show --events`: a line for each event that says something of its own, under its number and its time in the run. */
export async function showEvents(
  { print }: Pick<CommandContext, 'print'>,
  ledger: Ledger,
  {
    state,
    toSeq,
    turn,
  }: { readonly state: RunState; readonly toSeq?: number | undefined; readonly turn?: number | undefined },
): Promise<void> {
  const types = eventTypes.filter((type) => isOfInterest({ type }) || type === 'tool_results_injected')
  const width = `${state.seq}`.length
  const { startedAt } = toRunTimes(state)
  let called: EventOf<'model_call_started'> | undefined
  for await (const event of eventsOf(ledger, state.runId, types, { toSeq, turn })) {
    if (event.type === 'model_call_started') called = event
    const isReply = event.type === 'assistant_message_finished' || event.type === 'model_stream_failed'
    const tookMs =
      isReply && called ? event.at - called.at : 'durationMs' in event ? event.durationMs : undefined
    const took = tookMs === undefined ? '' : `  took ${durationText(tookMs)}`
    const place = event.turn === 0 ? '' : `turn ${event.turn}`
    const since = `+${durationText(Math.max(0, event.at - startedAt))}`
    const what = eventText(event, maxEventCharacters)
    await print(
      `${`${event.seq}`.padStart(width)}  ${since.padEnd(12)}  ${place.padEnd(8)}  ${what}${took}\n`,
    )
  }
}

/** What `show` was given. */
export interface ShowOptions {
  readonly ledger: string
  readonly run: string
  /** The `seq` that the run is shown at. */
  readonly at?: number
  /** Of this turn only. */
  readonly turn?: number
  /** This event only, whole. */
  readonly event?: number
  /** Shows the model's request there, in the place of what happened. */
  readonly request?: boolean
  /** Shows its events, one a line, in the place of what happened. */
  readonly events?: boolean
  /** Tells turns that do the same one by one. */
  readonly whole?: boolean
  /** `false`: prints without a pager. */
  readonly pager?: boolean
}

/** Declares what `show` takes. */
export function declareShow(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .argument('<run>', 'id of the run')
    .option('--at <seq>', 'the run as it was right after this event', wholeNumber)
    .option('--turn <n>', 'only this turn', wholeNumber)
    .addOption(
      new Option('--event <seq>', 'only this event, whole; with --json on one line')
        .argParser(wholeNumber)
        .conflicts(['at', 'turn', 'request', 'events']),
    )
    .option('--request', 'the request that the model got, or would get, at this event')
    .addOption(new Option('--events', 'the events but for deltas, one a line').conflicts(['request', 'json']))
    .option('--whole', 'print similar turns one by one, not joined')
    .option('--no-pager', 'on a terminal, print directly instead of through PAGER or less')
    .action(async (ledger: string, run: string, options: Omit<ShowOptions, 'ledger' | 'run'>) => {
      done(await show(context, { ledger, run, ...options }))
    })
}

/** `show`: the state of a run and what happened in it, up to now or to an event; one of its turns; one of its events. */
export function show(given: CommandContext, options: ShowOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, at, event, turn, request = false, events = false, pager = true } = options
  const { programName } = given
  return withRun(options, programName, async (ledger, runId) => {
    const maxSeq = (await ledger.head(runId))?.seq ?? 0
    requireEvent(at ?? event, maxSeq, (word) =>
      commandLine(programName, 'show', ledgerPath, runId, word, `${maxSeq}`),
    )
    await given.paged(pager, async (context) => {
      if (event !== undefined) return await showEvent(context, ledger, { runId, seq: event })
      const { shown, story } = await shownRun(ledger, {
        runId,
        at,
        turn,
        maxSeq,
        showsStory: given.json || !(request || events),
      })
      const { print, paint } = context
      if (turn !== undefined && (turn > shown.state.turn || turn < 1)) {
        throw new CommandError(
          'not_found',
          `Run ${runId} has ${shown.state.turn} turns here, so there is no turn ${turn}. Name one of them.`,
        )
      }
      if (context.json) return await print(`${JSON.stringify(asData(shown, story, turn))}\n`)
      await print(`${factsText(shown)}\n`)
      if (request) return await print(requestText(shown.state, paint))
      if (events) return await showEvents(context, ledger, { state: shown.state, toSeq: at, turn })
      const parts = story.parts.filter((part) => turn === undefined || part.turn === turn)
      const history = await historyMessages(ledger, runId, story)
      const whole = options.whole === true || turn !== undefined
      await print(storyText({ ...story, parts }, { paint, state: shown.state, history, whole }))
    })
    return exitCodes.ok
  })
}

function requireEvent(seq: number | undefined, maxSeq: number, last: (word: string) => string): void {
  if (seq === undefined || seq <= maxSeq) return
  throw new CommandError(
    'not_found',
    `The run has ${maxSeq} events, so there is no event ${seq}. See the last: ${last('--at')}`,
  )
}

/** What is asked about a run. */
interface Asked {
  readonly runId: RunId
  readonly at: number | undefined
  /** The only turn of which the story is shown. */
  readonly turn: number | undefined
  readonly maxSeq: number
  /** Whether its story is shown. */
  readonly showsStory: boolean
}

async function shownRun(
  ledger: Ledger,
  { runId, at, turn, maxSeq, showsStory }: Asked,
): Promise<{ readonly shown: ShownRun; readonly story: RunStory }> {
  const builder = new StoryBuilder()
  const reading = await readRun(ledger, runId, at, {
    types: showsStory ? storyTypes : [],
    turn,
    onEvent: (event) => builder.follow(event),
  })
  const { state } = reading
  const isNow = state.seq >= maxSeq
  // What other runs wait for is known of now only.
  const waits = isNow ? await waitsOf(ledger, state) : ownWaits(state)
  const isDriven = isNow && (await isRunDriven(ledger, runId))
  const statusView = runStatusView(state, { waits, isDriven, isPast: !isNow })
  const story = await builder.end(ledger, runId)
  const shown: ShownRun = {
    ...reading,
    maxSeq,
    waitedMs: await waitedTime(ledger, state),
    waits,
    statusView,
    ...(!isNow && { now: await statusNow(ledger, { runId, maxSeq }) }),
    childRuns: await childRunsOf(ledger, reading.outline.children),
    inbox: isNow ? await ledger.inbox(runId) : [],
  }
  return { shown, story }
}

/** Damage in later events does not keep an earlier event of the run from being shown. */
async function statusNow(
  ledger: Ledger,
  { runId, maxSeq }: Pick<Asked, 'runId' | 'maxSeq'>,
): Promise<ShownRun['now']> {
  try {
    const end = await endOf(ledger, runId, maxSeq)
    if (end) return { status: 'done', reason: end.reason, ...omitUndefined({ detail: end.detail }) }
    const state = await foldTo(ledger, runId)
    return await currentStatus(ledger, state)
  } catch {
    return undefined
  }
}

/** The end of a run, where its last event is that: nothing has to be folded to say its status. */
async function endOf(
  ledger: Ledger,
  runId: RunId,
  maxSeq: number,
): Promise<EventOf<'run_finished'> | undefined> {
  for await (const event of ledger.read(runId, { fromSeq: maxSeq, toSeq: maxSeq })) {
    if (event.type === 'run_finished') return event
  }
  return undefined
}

/** The status of a run at its last event. */
async function currentStatus(ledger: Ledger, state: RunState): Promise<RunStatusView> {
  const isDriven = await isRunDriven(ledger, state.runId)
  return runStatusView(state, { waits: await waitsOf(ledger, state), isDriven })
}

async function childRunsOf(ledger: Ledger, runIds: readonly RunId[]): Promise<readonly ChildRun[]> {
  const childRuns: ChildRun[] = []
  for (const runId of runIds) {
    // A call may have been started without that its run was, and a fork has had none of its own.
    if ((await ledger.head(runId)) === undefined) continue
    const state = await foldTo(ledger, runId)
    childRuns.push({ runId, agent: state.agent, ...(await currentStatus(ledger, state)) })
  }
  return childRuns
}

/** What was said before the run, as its model was shown it at first. */
async function historyMessages(
  ledger: Ledger,
  runId: RunId,
  { parts }: RunStory,
): Promise<readonly Message[]> {
  const history = parts.find(({ kind }) => kind === 'history')
  return history ? transcript(await foldTo(ledger, runId, history.toSeq)) : []
}

function asData(shown: ShownRun, story: RunStory, turn: number | undefined): object {
  const { state, outline, maxSeq, waits, statusView, now, childRuns, inbox } = shown
  const { runId, agent, definition, phase, seq, epoch, totals, limits, cancel, metLimit } = state
  const { sessionId, sessionPlace, parent } = state
  const { startedAt, lastAt } = toRunTimes(state)
  const { turns, toolCalls, children, usage, costUsd } = totals
  const isAsked = (each: { readonly turn: number }): boolean => turn === undefined || each.turn === turn
  return {
    runId,
    agent,
    agents: outline.agents,
    model: definition.model,
    sessionId,
    sessionPlace,
    parent,
    ...statusView,
    now,
    phase,
    turn: state.turn,
    seq,
    maxSeq,
    epoch,
    startedAt: timeText(startedAt),
    lastEventAt: timeText(lastAt),
    todo: outline.todo?.items,
    limits,
    cancel,
    metLimit,
    turns,
    toolCalls,
    children,
    usage,
    costUsd,
    tally: tallyIn(outline),
    removedFrom: state.removedFrom,
    pendingApprovals: waits.approvals,
    deferredCalls: waits.deferred,
    openCalls: openCallsOf(state),
    childRuns,
    inbox,
    messages: recordedMessages(state),
    request: rebuiltRequest(state),
    story: story.parts.filter(isAsked),
    calls: story.calls.filter(isAsked),
  }
}

/** Returns the messages without the placeholders for calls that have no result yet. */
function recordedMessages(state: RunState): readonly Message[] {
  const open = new Set(openCallsOf(state).map(({ toolCallId }) => toolCallId))
  return transcript(state).flatMap((message): readonly Message[] => {
    if (message.role !== 'tool') return [message]
    const results = message.results.filter(({ toolCallId }) => !open.has(toolCallId))
    return results.length === 0 ? [] : [{ ...message, results }]
  })
}

/** The very request, as JSON, under a line that says whether it was sent. */
function requestText(state: RunState, paint: Paint): string {
  const { model, request, requestDigest, additions = [] } = rebuiltRequest(state)
  const which = `${model.provider} ${model.modelId}`
  const head =
    requestDigest === undefined
      ? `No model call is under way at this event. One to ${which} would carry this, unless the agent's prepareTurn says otherwise:`
      : `Sent to ${which}, digest ${requestDigest}:`
  const more = additions.map(
    (addition) =>
      `The adapter's options ${addition.replaces ? 'replace' : 'add'} ${additionText(addition)}. Its value is not shown here.`,
  )
  return `${[paint('bold', head), ...more].join('\n')}\n${JSON.stringify(request, undefined, 2)}\n`
}
